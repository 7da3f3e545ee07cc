from __future__ import annotations

import numpy as np
import pytest
import shapely

from radp.geometry.lines import arc_length, headings, largest_curvature, offset, point_at, resample, tangents


def circle(radius: float, degrees: float, count: int = 200) -> np.ndarray:
    angle = np.radians(np.linspace(0, degrees, count))
    return radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)


def test_arc_length_and_points_between() -> None:
    line = np.array([[0.0, 0.0], [3.0, 4.0], [3.0, 10.0]])
    assert arc_length(line).tolist() == [0.0, 5.0, 11.0]
    assert point_at(line, np.array([-1.0, 2.5, 8.0, 99.0])).tolist() == [[0, 0], [1.5, 2], [3, 7], [3, 10]]


def test_resample_keeps_ends_and_agrees_with_shapely() -> None:
    line = np.array([[0.0, 0.0], [7.0, 1.0], [9.0, 8.0], [20.0, 8.0]])
    points = resample(line, 1.0)
    assert np.array_equal(points[[0, -1]], line[[0, -1]])
    whole = shapely.LineString(line)
    expected = [whole.interpolate(s).coords[0] for s in np.linspace(0, whole.length, len(points))]
    assert np.allclose(points, expected)
    assert len(resample(line, 1.0, count=5)) == 5


@pytest.mark.parametrize("distance", [-2.0, 1.5])
def test_offset_of_a_left_bend(distance: float) -> None:
    """Left of a counter-clockwise circle is its inside."""
    shifted = offset(circle(20.0, 270), distance)
    assert np.allclose(np.hypot(*shifted.T), 20.0 - distance, atol=2e-3)


def test_offset_mitres_a_corner() -> None:
    shifted = offset(np.array([[0.0, 0.0], [10.0, 0.0], [10.0, 10.0]]), 1.0)
    assert np.allclose(shifted, [[0, 1], [9, 1], [9, 10]])


def test_headings_are_unwrapped_and_tangents_have_unit_length() -> None:
    heading = headings(circle(5.0, 720, 400))
    assert np.all(np.diff(heading) > 0)
    assert heading[-1] - heading[0] == pytest.approx(4 * np.pi, abs=0.05)
    assert np.allclose(np.hypot(*tangents(circle(5.0, 90)).T), 1.0)


def test_largest_curvature() -> None:
    assert largest_curvature(circle(12.0, 90), 3.0) == pytest.approx(1 / 12, rel=0.02)
    assert largest_curvature(np.array([[0.0, 0.0], [50.0, 0.0]]), 3.0) == 0.0
