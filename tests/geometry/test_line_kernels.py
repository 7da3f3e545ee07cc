"""Lines to drive along: checked against shapely and against circles with known answers."""

import math

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from radp.geometry.line_kernels import line_curvature, line_pose, line_project, nearest_on_line, sample_line

STEP = 0.5
RADIUS = 30.0


def circle(angle=math.pi, radius=RADIUS):
    turn = np.linspace(0.0, angle, 400)
    return radius * np.stack((np.sin(turn), 1.0 - np.cos(turn)), -1)


@given(st.floats(-50, 50), st.floats(-50, 50), st.integers(0, 50))
@settings(max_examples=60, deadline=None)
def test_nearest_on_line_agrees_with_shapely(x, y, seed):
    points = np.cumsum(np.random.default_rng(seed).normal(size=(12, 2)) * 8.0, axis=0)
    gap, s, _ = nearest_on_line(x, y, points, 0, len(points))
    line, point = shapely.LineString(points), shapely.Point(x, y)
    assert gap == pytest.approx(line.distance(point), abs=1e-9)
    assert line.interpolate(s).distance(point) == pytest.approx(gap, abs=1e-9)


def test_sampled_line_keeps_length_and_heading_of_a_circle():
    points, headings = sample_line(circle(), STEP)
    s = np.arange(len(points)) * STEP
    assert abs(s[-1] - math.pi * RADIUS) <= STEP
    np.testing.assert_allclose(headings[1:-2], s[1:-2] / RADIUS, atol=2e-3)
    assert line_curvature(20.0, headings, STEP) == pytest.approx(1 / RADIUS, rel=0.02)


def test_sampled_line_ignores_points_that_repeat():
    points = np.array([[0.0, 0.0], [0.0, 0.0], [10.0, 0.0], [10.0, 0.0], [10.0, 5.0]])
    sampled, _ = sample_line(points, STEP)
    assert np.isfinite(sampled).all()
    np.testing.assert_allclose(sampled[-1], [10.0, 5.0], atol=1e-9)


@pytest.mark.parametrize("s", [-5.0, 0.0, 12.3, 60.0, 110.0])
@pytest.mark.parametrize("lateral", [-3.0, 0.0, 2.5])
def test_project_is_the_inverse_of_pose(s, lateral):
    points, headings = sample_line(circle(), STEP)
    x, y, heading = line_pose(s, points, headings, STEP)
    x, y = x - lateral * math.sin(heading), y + lateral * math.cos(heading)
    for near in (-1, int(s / STEP) + 7):
        back, side = line_project(x, y, points, headings, STEP, max(near, -1), 30)
        assert back == pytest.approx(s, abs=0.03)
        assert side == pytest.approx(lateral, abs=0.02)


def test_beyond_both_ends_the_line_goes_on_straight():
    points, headings = sample_line(np.array([[0.0, 0.0], [10.0, 0.0]]), STEP)
    assert line_pose(-3.0, points, headings, STEP) == pytest.approx((-3.0, 0.0, 0.0))
    assert line_pose(14.0, points, headings, STEP) == pytest.approx((14.0, 0.0, 0.0))
