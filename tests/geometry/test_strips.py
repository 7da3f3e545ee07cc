"""Strips and regions against shapely."""

from __future__ import annotations

import numpy as np
import pytest
import shapely

from radp.geometry.regions import ring_bounds, ring_distance, rings_touch, winding_contains
from radp.geometry.strips import line_segments, strip_meets_ring, strip_ring

ROUNDING = 1e-8  # m, at coordinates of 4.6e6


def smooth(random: np.random.Generator) -> np.ndarray:
    """A road: even spacing, slowly changing curvature."""
    count, spacing = random.integers(2, 60), random.uniform(0.3, 3.0)
    bend = random.uniform(-0.1, 0.1) + random.normal(0.0, 0.005, count).cumsum()
    return chain(np.full(count, spacing), np.cumsum(bend * spacing))


def rough(random: np.random.Generator) -> np.ndarray:
    count = random.integers(2, 60)
    return chain(random.uniform(0.05, 3.0, count), random.normal(0.0, 0.1, count).cumsum())


def wild(random: np.random.Generator) -> np.ndarray:
    """Sharp turns, segments shorter than the width."""
    count = random.integers(1, 8)
    return chain(random.uniform(0.05, 6.0, count), random.normal(0.0, 0.6, count).cumsum())


def chain(steps: np.ndarray, headings: np.ndarray) -> np.ndarray:
    moves = np.column_stack([steps * np.cos(headings), steps * np.sin(headings)])
    return np.vstack([(0.0, 0.0), moves.cumsum(axis=0)])


def ring_of(line: np.ndarray, half: float) -> np.ndarray:
    ring = np.empty((4000, 2))
    size = strip_ring(line, len(line), half, ring)
    assert size <= len(ring)
    return ring[:size]


def buffer(line: np.ndarray, half: float) -> shapely.Polygon:
    return shapely.LineString(line).buffer(half, cap_style="flat")


@pytest.mark.parametrize("kind", [smooth, rough, wild])
@pytest.mark.parametrize("far", [0.0, 1.0])
def test_the_ring_is_the_border_of_shapelys_buffer(kind, far: float) -> None:
    random = np.random.default_rng(1)
    for _ in range(100):
        line, half = kind(random) + far * np.array([6e5, 4.6e6]), random.uniform(0.5, 1.5)
        ring, area = ring_of(line, half), buffer(line, half)
        border = shapely.points(shapely.get_coordinates(area))
        assert shapely.distance(border, shapely.LinearRing(ring)).max() < ROUNDING
        assert shapely.distance(shapely.points(ring), area).max() < ROUNDING


def test_meeting_distance_and_containment_agree_with_shapely() -> None:
    random = np.random.default_rng(2)
    kinds, joint = (smooth, rough, wild), np.empty((70, 2))
    met = 0
    for i in range(400):
        a, b = kinds[i % 3](random), kinds[i // 3 % 3](random) + random.uniform(-15, 15, 2)
        half_a, half_b = random.uniform(0.5, 1.5, 2)
        ring_a, ring_b = ring_of(a, half_a), ring_of(b, half_b)
        area_a, area_b = buffer(a, half_a), buffer(b, half_b)
        gap = ring_distance(ring_a, 0, len(ring_a), ring_b, 0, len(ring_b), 1e9)
        assert gap == pytest.approx(area_a.distance(area_b), abs=ROUNDING)
        segment = np.empty((len(a), 9))
        count = line_segments(a, len(a), half_a, segment)
        meets = strip_meets_ring(segment, count, half_a, ring_b, 0, len(ring_b), joint)
        assert meets == area_a.intersects(area_b) == rings_touch(ring_a, 0, len(ring_a), ring_b, 0, len(ring_b))
        met += meets
        x, y = random.uniform(-5, 5, 2)
        assert winding_contains(ring_a, 0, len(ring_a), x, y) == area_a.contains(shapely.Point(x, y))
        np.testing.assert_allclose(ring_bounds(ring_a, 0, len(ring_a)), area_a.bounds, atol=ROUNDING)
    assert 50 < met < 350


def test_areas_inside_each_other_touch() -> None:
    outer = np.array([(-10.0, -10.0), (10.0, -10.0), (10.0, 10.0), (-10.0, 10.0)])
    inner = ring_of(np.array([(0.0, 0.0), (3.0, 0.5)]), 1.0)
    assert ring_distance(outer, 0, 4, inner, 0, len(inner), 1e9) == 0.0
    assert ring_distance(inner, 0, len(inner), outer, 0, 4, 1e9) == 0.0
    segment, joint = np.empty((1, 9)), np.empty((70, 2))
    count = line_segments(np.array([(0.0, 0.0), (3.0, 0.5)]), 2, 1.0, segment)
    assert strip_meets_ring(segment, count, 1.0, outer, 0, 4, joint)


def test_the_limit_ends_the_search() -> None:
    a = np.array([(0.0, 0.0), (1.0, 0.0), (1.0, 1.0), (0.0, 1.0)])
    moved = a + np.array([4.0, 0.0])
    assert ring_distance(a, 0, 4, moved, 0, 4, 1e9) == 3.0
    assert ring_distance(a, 0, 4, moved, 0, 4, 2.0) == 2.0
    assert ring_distance(a, 0, 0, a, 0, 4, 7.0) == 7.0


def test_a_ring_without_room_tells_its_size() -> None:
    line = np.array([(0.0, 0.0), (5.0, 0.0), (5.0, 5.0)])
    full = len(ring_of(line, 1.0))
    small = np.empty((3, 2))
    assert strip_ring(line, 3, 1.0, small) == full
    np.testing.assert_array_equal(small, ring_of(line, 1.0)[:3])
    assert strip_ring(np.zeros((2, 2)), 2, 1.0, small) == 0
