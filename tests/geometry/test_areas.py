"""Areas as arrays: which hold a point, which are near it, which is the nearest; against shapely."""

import numpy as np
import pytest
import shapely

from radp.geometry.areas import area_arrays, areas_at, areas_near, distance_to_area, in_any_area, nearest_area
from radp.geometry.ragged import Polygons


def random_areas(random, count=12):
    """Star-shaped areas, some of which overlap; every third one has a hole."""
    rings = []
    for i in range(count):
        angles = np.sort(random.uniform(0.0, 2 * np.pi, 9))
        outline = np.stack((np.cos(angles), np.sin(angles)), 1) * random.uniform(2.0, 6.0, (9, 1))
        place = random.uniform(-15.0, 15.0, 2)
        rings.append([place + outline] + ([place + 0.3 * outline] if i % 3 == 0 else []))
    shapes = [shapely.Polygon(area[0], area[1:]) for area in rings]
    return Polygons.from_rings(rings), shapes


@pytest.mark.parametrize("seed", range(5))
def test_areas_agree_with_shapely(seed):
    random = np.random.default_rng(seed)
    polygons, shapes = random_areas(random)
    areas, points = area_arrays(polygons), random.uniform(-22.0, 22.0, (200, 2))
    held = areas_at(points, areas)
    for i, (x, y) in enumerate(points):
        point = shapely.Point(x, y)
        distance = np.array([shape.distance(point) for shape in shapes])
        inside = [k for k, shape in enumerate(shapes) if shape.contains(point)]
        assert held.row(i).tolist() == inside
        assert in_any_area(x, y, areas) == bool(inside)
        assert areas_near(x, y, areas, 3.0).tolist() == np.flatnonzero(distance <= 3.0).tolist()
        nearest, gap = nearest_area(x, y, areas)
        assert gap == pytest.approx(distance.min(), abs=1e-12)
        assert gap == distance_to_area(x, y, nearest, areas)


def test_nothing_is_near_where_there_is_nothing():
    areas = area_arrays(Polygons.from_exteriors([]))
    assert nearest_area(0.0, 0.0, areas) == (-1, np.inf)
    assert not in_any_area(0.0, 0.0, areas)
    assert len(areas_near(0.0, 0.0, areas, 10.0)) == 0


def test_of_two_areas_with_one_nearest_corner_the_one_of_the_nearer_bounds_counts():
    corner = (0.0, 0.0)
    slanted = [corner, (-4.0, 4.0), (-6.0, 2.0)]  # its bounds reach up to y = 4
    flat = [corner, (-5.0, -5.0), (-1.0, -5.0)]
    areas = area_arrays(Polygons.from_exteriors([flat, slanted]))
    assert nearest_area(0.0, 3.0, areas) != nearest_area(3.0, 0.0, areas)
    assert nearest_area(3.0, 0.0, areas) == (0, 3.0)
    assert nearest_area(1.0, 2.0, areas)[0] == 1
