import math

import torch

from radp.geometry.frames import (
    heading_angle,
    heading_vector,
    points_from_frame,
    points_to_frame,
    rotate,
    rotate_back,
    shift_forward,
    wrap_angle,
)


def test_angles_wrap_to_half_open_turn():
    angles = torch.tensor([0.0, math.pi, -math.pi, 3.5, -3.5, 7.0], dtype=torch.float64)
    wrapped = wrap_angle(angles)
    assert ((wrapped >= -math.pi) & (wrapped < math.pi)).all()
    torch.testing.assert_close(wrapped.cos(), angles.cos())
    torch.testing.assert_close(wrapped.sin(), angles.sin())


def test_a_point_ahead_of_a_frame_that_looks_north():
    frame = torch.tensor([10.0, 5.0, 0.0, 1.0])
    ahead, left = torch.tensor([10.0, 7.0]), torch.tensor([9.0, 5.0])
    torch.testing.assert_close(points_to_frame(ahead, frame), torch.tensor([2.0, 0.0]))
    torch.testing.assert_close(points_to_frame(left, frame), torch.tensor([0.0, 1.0]))


def test_every_way_back():
    generator = torch.Generator().manual_seed(0)
    points, heading = torch.randn(5, 7, 2, generator=generator), torch.rand(5, 1, generator=generator) * 6 - 3
    frame = torch.cat((torch.randn(5, 1, 2, generator=generator), heading_vector(heading)), -1)
    torch.testing.assert_close(points_from_frame(points_to_frame(points, frame), frame), points)
    turned = rotate(points, heading.cos(), heading.sin())
    torch.testing.assert_close(rotate_back(turned, heading.cos(), heading.sin()), points)
    torch.testing.assert_close(heading_angle(heading_vector(heading)), heading)


def test_shift_forward_moves_along_the_heading():
    pose = torch.tensor([1.0, 2.0, 0.0, 1.0])
    assert shift_forward(pose, 1.5).tolist() == [1.0, 3.5, 0.0, 1.0]
    assert shift_forward(shift_forward(pose, 1.5), -1.5).tolist() == pose.tolist()
