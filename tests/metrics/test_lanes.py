"""The lane of a point, the route and the set C on small maps with known answers."""

from __future__ import annotations

import numpy as np
import pytest

from radp.metrics.score import evaluate
from radp.scenario import RoadMap
from tests.made_roads import box_lane, patches
from tests.metrics.made_drives import drive_on


def route(road_map: RoadMap, points: list[tuple[float, float]]) -> list[list[str]]:
    """Lane ids per point, after the backward pass."""
    return evaluate(drive_on(road_map, np.array([(x, y, 0.0) for x, y in points]))).ego_route


def fork() -> RoadMap:
    """Lane A (x 0..20), connectors S and L that both begin there, then lanes B (after S) and C (after L, further left).

    S covers y -2..2, L covers y -2..6 (x 20..40), so that most points of S are in L as well."""
    return patches(
        [
            box_lane("A", (0, 20, -2, 2), after=("S", "L")),
            box_lane("S", (20, 40, -2, 2), "connector", after=("B",), before=("A",)),
            box_lane("L", (20, 40, -2, 6), "connector", after=("C",), before=("A",)),
            box_lane("B", (40, 60, -2, 2), before=("S",)),
            box_lane("C", (40, 60, 2, 6), before=("L",)),
        ],
        crossings=((20, 40, -20, 20),),
    )


def test_connectors_in_map_order_and_border_outside() -> None:
    assert route(fork(), [(30, 0)]) == [["S", "L"]]
    assert route(fork(), [(30, 4)]) == [["L"]]
    assert route(fork(), [(10, 2)]) == [[]]  # on the border of A
    assert route(fork(), [(10, 3)]) == [[]]


def test_lane_that_follows_decides_between_connectors() -> None:
    assert route(fork(), [(19, 0), (21, 0), (30, 0), (41, 0)]) == [["A"], ["S"], ["S"], ["B"]]
    assert route(fork(), [(19, 0), (21, 0), (39, 1), (41, 3)]) == [["A"], ["L"], ["L"], ["C"]]


def test_smaller_next_row_replaces_a_larger_one() -> None:
    assert route(fork(), [(19, 0), (21, 0), (30, 4)]) == [["A"], ["L"], ["L"]]


def test_empty_next_row_empties_a_row_of_several() -> None:
    far = [(19, 0), (21, 0), (30, 0), (30, 300)]
    assert route(fork(), far) == [["A"], [], [], []]
    assert route(fork(), [(19, 0), (30, 4), (30, 300)]) == [["A"], ["L"], []]  # a single one stays


def test_a_near_connector_is_kept_within_a_crossing() -> None:
    beside = [(10, 0), (30, 4), (30, 4), (30, 10.9)]  # 4.9 m beside L
    assert route(fork(), beside)[-1] == ["L"]
    assert route(fork(), [*beside[:-1], (30, 11.1)])[-1] == []
    assert route(fork(), [(30, 4), (30, 10.9)])[-1] == []  # the rule starts with the third sample


def test_a_near_connector_is_kept_against_another_one() -> None:
    roads = patches(
        [
            box_lane("M", (0, 20, 0, 4), "connector"),
            box_lane("N", (0, 20, 6, 10), "connector"),
        ]
    )
    assert route(roads, [(5, 2), (5, 2), (6, 7)]) == [["M"], ["M"], ["M"]]
    assert route(roads, [(5, 2), (6, 7)]) == [["M"], ["N"]]  # not yet in the second sample
    assert route(roads, [(5, 2), (5, 2), (6, 5)]) == [["M"], ["M"], []]  # no crossing there


def test_successor_of_several_is_searched_anew() -> None:
    roads = patches(
        [
            box_lane("S", (0, 20, 0, 4), "connector", after=("B",)),
            box_lane("T", (0, 20, 0, 4), "connector"),
            box_lane("B", (20, 40, 0, 4), before=("S",)),
        ]
    )
    assert route(roads, [(10, 2), (30, 2)]) == [["S"], ["B"]]


def connected(road_map: RoadMap, poses: list[tuple[float, float, float]]) -> list[bool]:
    return evaluate(drive_on(road_map, np.array(poses))).in_one_or_connected_lanes.tolist()


def test_set_c_in_one_lane_between_lanes_and_over_a_joint() -> None:
    assert connected(fork(), [(10, 0, 0), (19, 0, 0), (20.5, 0, 0), (38, 0, 0), (41, 0, 0)]) == [True] * 5
    side_by_side = patches([box_lane("A", (0, 40, -2, 2)), box_lane("B", (0, 40, 2, 6))])
    assert connected(side_by_side, [(20, 0, 0), (20, 2, 0), (20, 4, 0)]) == [True, False, True]
    assert connected(side_by_side, [(20, 5.5, 0), (20, 30, 0)]) == [False, False]  # partly outside, wholly outside


def test_second_sample_uses_newly_found_lanes_at_once() -> None:
    """Front left finds N by searching; in the second sample N joins the candidates, so the other corners are put into N
    as well, although X has a successor S there. In a later sample they are in S only."""
    roads = patches(
        [
            box_lane("X", (0, 20, -2, 2), after=("S",)),
            box_lane("S", (20, 40, -2, 0.5), "connector", before=("X",)),
            box_lane("N", (20, 40, -2, 2), "connector"),
        ]
    )
    inside_x, ahead = (10.0, 0.0, 0.0), (30.0, -0.5, 0.05)
    assert connected(roads, [inside_x, ahead]) == [True, True]
    assert connected(roads, [inside_x, inside_x, ahead]) == [True, True, False]


def test_overlapping_lanes_take_the_first() -> None:
    roads = patches([box_lane("A", (0, 20, 0, 4)), box_lane("B", (10, 30, 0, 4))])
    assert route(roads, [(15, 2)]) == [["A"]]


def test_a_smaller_next_row_of_other_lanes_replaces_nothing() -> None:
    roads = patches(
        [
            box_lane("S", (0, 20, 0, 4), "connector"),
            box_lane("T", (0, 20, 0, 4), "connector"),
            box_lane("P", (20, 40, 0, 4), "connector"),
        ]
    )
    assert route(roads, [(10, 2), (30, 2)]) == [["S", "T"], ["P"]]


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("linked", [True, False])
def test_every_corner_must_be_connected(left: bool, linked: bool) -> None:
    """The rear is in A, one front corner in B, which follows A, the other one in C, which may or may not follow it."""
    b, c = ((0, 2), (-2, 0)) if left else ((-2, 0), (0, 2))
    roads = patches(
        [
            box_lane("A", (0, 20, -2, 2), after=("B", "C") if linked else ("B",)),
            box_lane("B", (20, 40, *b), before=("A",)),
            box_lane("C", (20, 40, *c), before=("A",) if linked else ()),
        ]
    )
    assert connected(roads, [(20.0, 0.0, 0.0)]) == [linked]
