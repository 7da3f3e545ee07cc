"""Routes that begin under the ego, hang together and make no loops."""

import numpy as np
import pytest

from radp.road import route as road_route
from radp.road.places import current_roadblocks
from radp.sources.synthetic.road import INBOUND, OUTBOUND, lane_block, lane_name, link_block, make_map, route_blocks


@pytest.fixture(scope="module")
def road():
    return make_map(0)


def pose_on(road, lane, share=0.5, offset=0.0, turn=0.0):
    """(3,) pose on a lane's centre line, moved to the left and turned."""
    points = road.centerlines[road.lane_index[lane]]
    i = int(share * (len(points) - 2))
    heading = np.arctan2(*(points[i + 1] - points[i])[::-1])
    return np.array([*(points[i] + offset * np.array([-np.sin(heading), np.cos(heading)])), heading + turn])


def correct_route(road, route, pose):
    """The ids of the corrected route."""
    return tuple(road.roadblocks.ids[block] for block in road_route.correct_route(road, route, pose))


def test_good_route_stays(road):
    route = route_blocks(0, "left")
    assert correct_route(road, route, pose_on(road, lane_name(0, 1, INBOUND, 0))) == route
    # ... and also when the ego is already under way: nothing is cut at the front.
    assert correct_route(road, route, pose_on(road, lane_name(3, 0, OUTBOUND, 0))) == route


def test_route_that_begins_further_on_is_prepended_backwards(road):
    whole = route_blocks(0, "straight")
    assert correct_route(road, whole[3:], pose_on(road, lane_name(0, 1, INBOUND, 1))) == whole


def test_forward_search_splices_where_the_first_block_cannot_be_reached(road):
    # The first block comes from another arm; the second and later ones can be reached from where the ego is.
    whole = route_blocks(0, "straight")
    wrong_start = (lane_block(1, 1, INBOUND), *whole[2:])
    assert correct_route(road, wrong_start, pose_on(road, lane_name(0, 1, INBOUND, 1))) == whole


def test_missing_links_are_put_in(road):
    whole = route_blocks(2, "right")
    assert correct_route(road, whole[::2], pose_on(road, lane_name(2, 1, INBOUND, 1))) == whole


def test_route_is_cut_before_it_crosses_itself(road):
    # Two passages of the same crossing: the second set of connectors covers the first.
    first, second = route_blocks(0, "straight"), route_blocks(1, "straight")
    corrected = correct_route(road, first + second, pose_on(road, lane_name(0, 1, INBOUND, 0)))
    assert corrected == first + second[:3]


def test_unknown_blocks_and_empty_routes(road):
    route = route_blocks(0, "left")
    pose = pose_on(road, lane_name(0, 1, INBOUND, 0))
    assert correct_route(road, ("no such block", *route), pose) == route
    assert correct_route(road, (), pose) == ()


def test_standing_block_prefers_the_route_and_the_right_direction(road):
    # At the mouth of arm 0 several connectors lie on top of each other: only the route tells which one is meant.
    index = road.roadblocks.index
    for turn in ("left", "straight"):
        route = [index[block] for block in route_blocks(0, turn)]
        connector = road.lanes_of_roadblock[route[3]][0]
        pose = pose_on(road, road.lane_ids[connector], share=0.1)
        assert current_roadblocks(road, route, pose)[0] == route[3]
    # Against the traffic the block still counts as nearest, but it is only the last resort.
    pose = pose_on(road, lane_name(0, 1, INBOUND, 0), offset=1.0)
    facing_back = pose + np.array([0.0, 0.0, np.pi])
    inbound, outbound = index[lane_block(0, 1, INBOUND)], index[lane_block(0, 1, OUTBOUND)]
    assert current_roadblocks(road, [], pose)[0] == inbound
    assert current_roadblocks(road, [], facing_back)[0] == outbound
    assert index[link_block(0, INBOUND)] not in current_roadblocks(road, [], pose)


def test_far_from_every_road_the_nearest_block_counts(road):
    pose = pose_on(road, lane_name(0, 1, INBOUND, 1), offset=-40.0)
    assert current_roadblocks(road, [], pose) == [road.roadblocks.index[lane_block(0, 1, INBOUND)]]
