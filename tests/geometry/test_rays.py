"""Rays against shapely."""

from __future__ import annotations

import numpy as np
import shapely

from radp.geometry.rays import nearest_hit, ray_hits, segments_of


def test_first_meetings_agree_with_shapely() -> None:
    random = np.random.default_rng(0)
    lines = [random.uniform(-20, 20, (6, 2)) for _ in range(12)]
    origin, angle = random.uniform(-20, 20, (200, 2)), random.uniform(0, 2 * np.pi, 200)
    direction = np.stack((np.cos(angle), np.sin(angle)), axis=1)
    distance, segment = nearest_hit(ray_hits(origin, direction, 15.0, segments_of(lines)), 200)
    shapes = shapely.multilinestrings([shapely.linestrings(line) for line in lines])
    for o, d, found, k in zip(origin, direction, distance, segment):
        meeting = shapely.LineString((o, o + 15.0 * d)).intersection(shapes)
        expected = np.inf if meeting.is_empty else meeting.distance(shapely.Point(o))
        assert (k < 0) == meeting.is_empty and (found == expected or abs(found - expected) < 1e-9)
    assert np.isinf(distance).any() and np.isfinite(distance).any()


def test_nothing_to_meet() -> None:
    hits = ray_hits(np.zeros((3, 2)), np.ones((3, 2)), 5.0, segments_of([]))
    assert np.isinf(nearest_hit(hits, 3)[0]).all()
