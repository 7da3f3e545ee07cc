from __future__ import annotations

from array import array

import numpy as np

from radp.sources.sumo.recording import RoadUserTrace
from radp.sources.sumo.traffic_log import _person_states, _walks


def walk(points: np.ndarray, angle: float = 90.0) -> RoadUserTrace:
    """SUMO's angle: degrees clockwise from north."""
    rows = np.column_stack([points, np.full(len(points), angle), np.zeros(len(points))])
    return RoadUserTrace(10, array("d", rows.ravel().tolist()), [f"edge{i}" for i in range(len(points))])


def test_a_jump_makes_somebody_else() -> None:
    points = np.stack([np.arange(20) * 0.13, np.zeros(20)], axis=1)
    points[12:, 1] += 4.0
    (name, first), (other, second) = _walks("p", walk(points))
    assert (name, other) == ("p", "p.1")
    assert (first.first, len(first.lanes), second.first, len(second.lanes)) == (10, 12, 22, 8)
    assert np.array_equal(second.columns()[:, 1], np.full(8, 4.0))


def test_a_person_faces_where_it_walks_and_keeps_facing_there() -> None:
    north = np.stack([np.zeros(60), np.minimum(np.arange(60), 30) * 0.13], axis=1)
    states = _person_states(walk(north))
    assert np.allclose(states[5:, 2], np.pi / 2, atol=1e-6)
    assert np.allclose(states[12:20, 4], 1.3, atol=0.02)
    assert np.array_equal(states[50:, 3:], np.zeros((10, 2)))
