"""Compiled geometry against shapely on random boxes, polygons and lines."""

from __future__ import annotations

import math

import numpy as np
import pytest
import shapely

from radp.geometry import kernels
from radp.geometry.ragged import Polygons

FAR = np.array([664_000.0, 3_998_000.0])  # where real maps lie; rounding is coarser there
ORIGINS = pytest.mark.parametrize("origin", [np.zeros(2), FAR], ids=["near", "utm"])
CLOSE = 1e-6  # m: nearer than this the two may disagree about touching


def random_box(random: np.random.Generator, origin: np.ndarray) -> np.ndarray:
    """(4, 2) corners of a box within some metres of the origin."""
    x, y = origin + random.uniform(-6.0, 6.0, 2)
    out = np.empty((4, 2))
    length, width = random.uniform(0.2, 8.0), random.uniform(0.2, 3.0)
    kernels.box_corners(x, y, random.uniform(-4.0, 4.0), length, width, out)
    return out


def random_area(random: np.random.Generator, origin: np.ndarray) -> shapely.Polygon:
    """A star-shaped polygon, often with a hole."""
    angles = np.sort(random.uniform(0.0, 2.0 * math.pi, random.integers(5, 40)))
    radius = random.uniform(3.0, 10.0, len(angles))[:, None]
    ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
    holes = [origin + 0.2 * radius * ring] if random.random() < 0.5 else []
    return shapely.make_valid(shapely.Polygon(origin + radius * ring, holes))


def polygons_of(area: shapely.Polygon) -> Polygons:
    parts = [part for part in shapely.get_parts(area) if part.geom_type == "Polygon"]
    return Polygons.from_rings([[np.asarray(r.coords) for part in parts for r in (part.exterior, *part.interiors)]])


def test_box_corners_order_and_size() -> None:
    out = np.empty((4, 2))
    kernels.box_corners(1.0, 2.0, math.pi / 2, 4.0, 2.0, out)
    np.testing.assert_allclose(out, [[0, 4], [0, 0], [2, 0], [2, 4]], atol=1e-12)  # front-left first, then around


@ORIGINS
def test_boxes_against_shapely(origin: np.ndarray) -> None:
    random = np.random.default_rng(1)
    hits = 0
    for _ in range(2000):
        a, b = random_box(random, origin), random_box(random, origin)
        expected = shapely.Polygon(a).distance(shapely.Polygon(b))
        distance = kernels.quad_distance(a, b)
        assert distance == pytest.approx(expected, abs=1e-7)
        depth = shapely.Polygon(a).intersection(shapely.Polygon(b)).area
        if expected > CLOSE or depth > CLOSE:
            assert kernels.quads_intersect(a, b) == (expected == 0.0)
            hits += expected == 0.0
    assert 200 < hits < 1800


def test_touching_boxes_intersect() -> None:
    a, b = np.empty((4, 2)), np.empty((4, 2))
    kernels.box_corners(0.0, 0.0, 0.0, 4.0, 2.0, a)
    for x, y in ((4.0, 0.0), (0.0, 2.0), (4.0, 2.0), (-4.0, -2.0)):
        kernels.box_corners(x, y, 0.0, 4.0, 2.0, b)
        assert kernels.quads_intersect(a, b)
        kernels.box_corners(x * 1.001, y * 1.001, 0.0, 4.0, 2.0, b)
        assert not kernels.quads_intersect(a, b)


@ORIGINS
def test_segments_against_shapely(origin: np.ndarray) -> None:
    random = np.random.default_rng(2)
    hits = 0
    for _ in range(2000):
        box = random_box(random, origin)
        start, end = origin + random.uniform(-8.0, 8.0, (2, 2))
        line, polygon = shapely.LineString([start, end]), shapely.Polygon(box)
        expected = line.intersects(polygon)
        if line.distance(polygon) > CLOSE or line.intersection(polygon).length > CLOSE:
            assert kernels.segment_intersects_quad(*start, *end, box) == expected
            hits += expected
    assert 200 < hits < 1800


@ORIGINS
def test_areas_against_shapely(origin: np.ndarray) -> None:
    random = np.random.default_rng(3)
    inside = 0
    for _ in range(100):
        area = random_area(random, origin)
        polygons = polygons_of(area)
        arrays = (polygons.rings.values, polygons.rings.offsets)
        for x, y in origin + random.uniform(-11.0, 11.0, (60, 2)):
            point = shapely.Point(x, y)
            distance = kernels.distance_to_rings(x, y, *arrays, 0, len(polygons.rings))
            assert distance == pytest.approx(area.distance(point), abs=1e-7)
            if area.boundary.distance(point) > CLOSE:
                found = kernels.point_in_area(x, y, 0, *arrays, polygons.offsets, polygons.bounds)
                assert found == area.contains(point)
                assert found == kernels.point_in_rings(x, y, *arrays, 0, len(polygons.rings))
                inside += found
    assert inside > 500


def test_border_is_outside() -> None:
    square = Polygons.from_exteriors([[(0, 0), (4, 0), (4, 4), (0, 4)]])
    arrays = (square.rings.values, square.rings.offsets)
    for x, y in ((0.0, 2.0), (4.0, 2.0), (2.0, 0.0), (2.0, 4.0), (0.0, 0.0), (4.0, 4.0), (4.0, 0.0), (0.0, 4.0)):
        assert not kernels.point_in_rings(x, y, *arrays, 0, 1)
    for x, y in ((2.0, 2.0), (1e-9, 1e-9), (3.999999, 0.000001)):
        assert kernels.point_in_rings(x, y, *arrays, 0, 1)
    for x, y in ((5.0, 0.0), (-1.0, 4.0), (5.0, 4.0), (2.0, 4.1)):  # level with an edge or a corner, but beside it
        assert not kernels.point_in_rings(x, y, *arrays, 0, 1)


def test_empty_area_contains_nothing() -> None:
    nothing = Polygons.from_rings([[], [np.zeros((0, 2))]])
    arrays = (nothing.rings.values, nothing.rings.offsets)
    assert not kernels.point_in_rings(0.0, 0.0, *arrays, 0, 0)
    assert not kernels.point_in_rings(0.0, 0.0, *arrays, 0, 1)
    assert kernels.distance_to_rings(0.0, 0.0, *arrays, 0, 1) == math.inf


@ORIGINS
def test_lines_against_shapely(origin: np.ndarray) -> None:
    random = np.random.default_rng(4)
    for _ in range(300):
        points = origin + np.cumsum(random.uniform(-1.0, 3.0, (random.integers(2, 30), 2)), axis=0)
        line = shapely.LineString(points)
        assert kernels.line_length(points, 0, len(points)) == pytest.approx(line.length, abs=1e-7)
        for x, y in origin + random.uniform(-5.0, 30.0, (10, 2)):
            s = kernels.project_on_line(x, y, points, 0, len(points))
            expected = line.project(shapely.Point(x, y))
            if abs(s - expected) > 1e-6:  # two feet equally far away: either is right
                assert line.interpolate(s).distance(shapely.Point(x, y)) == pytest.approx(
                    line.distance(shapely.Point(x, y)), abs=1e-7
                )
            along = random.uniform(-1.0, line.length + 1.0)
            expected_point = line.interpolate(min(max(along, 0.0), line.length))
            np.testing.assert_allclose(
                kernels.point_on_line(along, points, 0, len(points)), expected_point.coords[0], atol=1e-6
            )


def test_wrap_angle() -> None:
    angles = np.linspace(-20.0, 20.0, 4001)
    wrapped = np.array([kernels.wrap_angle(a) for a in angles])
    assert wrapped.min() >= -math.pi
    assert wrapped.max() < math.pi
    np.testing.assert_allclose(np.exp(1j * wrapped), np.exp(1j * angles), atol=1e-9)


def test_bounds_of_areas_with_holes_parts_and_nothing() -> None:
    random = np.random.default_rng(8)
    areas = [[random.normal(size=(n, 2)) for n in rings] for rings in ((), (4, 5), (), (3,), (0,), (7, 3, 6), ())]
    bounds = Polygons.from_rings(areas).bounds
    for row, rings in zip(bounds, areas):
        points = np.concatenate([np.zeros((0, 2)), *rings])
        expected = (
            [*points.min(axis=0), *points.max(axis=0)] if len(points) else [math.inf, math.inf, -math.inf, -math.inf]
        )
        np.testing.assert_array_equal(row, expected)
    assert Polygons.from_rings([]).bounds.shape == (0, 4)
