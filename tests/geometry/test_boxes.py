import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from shapely.geometry import Polygon

from radp.geometry.boxes import axis_gaps, box_corners, make_boxes, separation

number = st.floats(-8, 8)
box = st.tuples(number, number, st.floats(-4, 4), st.floats(0.5, 6), st.floats(0.5, 3))


def tensor(values):
    x, y, angle, length, width = values
    return torch.tensor([x, y, math.cos(angle), math.sin(angle), length, width], dtype=torch.float64)


def test_corners_of_a_turned_box():
    corners = box_corners(torch.tensor([1.0, 2.0, 0.0, 1.0, 4.0, 2.0]))
    torch.testing.assert_close(corners, torch.tensor([[0.0, 4.0], [0.0, 0.0], [2.0, 0.0], [2.0, 4.0]]))


@settings(max_examples=150, deadline=None)
@given(box, box)
def test_separation_agrees_with_shapely(a, b):
    a, b = tensor(a), tensor(b)
    shapes = [Polygon(box_corners(value).numpy()) for value in (a, b)]
    gap = float(separation(a, b))
    if abs(gap) > 1e-6:
        assert (gap > 0) == (shapes[0].distance(shapes[1]) > 0)
    assert gap <= shapes[0].distance(shapes[1]) + 1e-9
    assert gap == pytest.approx(float(separation(b, a)), abs=1e-9)


def test_separation_side_by_side_is_the_distance():
    poses = torch.tensor([[0.0, 0.0, 1.0, 0.0], [1.0, 3.5, 1.0, 0.0], [1.0, 1.5, -1.0, 0.0]])
    boxes = make_boxes(poses, 5.0, torch.tensor([2.0, 2.0, 2.0]))
    assert separation(boxes[0], boxes[1:]).tolist() == pytest.approx([1.5, -0.5])
    assert axis_gaps(boxes[0], boxes[1]).shape == (8,)


def test_separation_has_gradients():
    a = torch.tensor([0.0, 0.0, 1.0, 0.0, 4.0, 2.0], dtype=torch.float64, requires_grad=True)
    b = torch.tensor([1.0, 4.0, math.cos(0.3), math.sin(0.3), 5.0, 2.0], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(separation, (a, b))
