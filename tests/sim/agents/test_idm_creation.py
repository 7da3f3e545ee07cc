"""Which vehicles become reactive agents, and where they stand at sample 0."""

from __future__ import annotations

import numpy as np

from radp.scenario import Box, ObjectType, Scenario
from radp.sim.agents.idm import IdmAgents
from radp.sim.agents.idm_create import create_crew
from tests.made_roads import RoadMaker, arc, line, square
from tests.made_scenarios import car, still


def first_frame(scenario: Scenario) -> tuple[IdmAgents, np.ndarray, np.ndarray]:
    model = IdmAgents([scenario])
    state, valid = model.reset(scenario.ego[:1])
    return model, state[0], valid[0]


def test_a_vehicle_is_snapped_to_the_centre_line() -> None:
    maker = RoadMaker()
    maker.add(line(0, 0, 100, 0))
    model, state, valid = first_frame(still(maker.build(), [car(30.3, 1.2, 0.2, 5.0)]))
    assert valid.tolist() == [True] and model.ids == (("vehicle00",),)
    np.testing.assert_allclose(state[0], [30.3, 0.0, 0.0, 5.0, 0.0], atol=1e-12)


def test_a_vehicle_off_the_road_is_dropped() -> None:
    maker = RoadMaker()
    maker.add(line(0, 0, 100, 0))
    road = maker.build()
    assert first_frame(still(road, [car(30, 2.5)]))[0].ids == ((),)
    assert first_frame(still(road, [car(30, 2.0)]))[0].ids == ((),)  # the border is outside
    assert first_frame(still(road, [car(30, 1.9)]))[0].ids == (("vehicle00",),)


def test_connectors_count_inside_intersections_only() -> None:
    maker = RoadMaker()
    maker.add(line(0, 0, 20, 0), connector=True)
    assert first_frame(still(maker.build(), [car(10)]))[0].ids == ((),)
    maker.crossings.append(square(5, -5, 15, 5))
    assert first_frame(still(maker.build(), [car(10)]))[0].ids == (("vehicle00",),)


def test_the_heading_difference_is_not_wrapped() -> None:
    maker = RoadMaker()
    backward = maker.add(line(20, 0, 0, 0), connector=True)  # heading pi
    crossing = maker.add(arc(10, -10, np.pi / 2, 200.0, 0.1), connector=True)  # heading about pi / 2
    maker.crossings.append(square(-5, -15, 25, 15))
    road = maker.build()
    near = create_crew(still(road, [car(10, 0, np.pi - 0.1)]))
    assert near.lane.tolist() == [backward]
    across = create_crew(still(road, [car(10, 0, -np.pi + 0.1)]))  # 0.1 rad away, 6.2 as the difference is taken
    assert across.lane.tolist() == [crossing]


def test_lanes_go_before_connectors() -> None:
    maker = RoadMaker()
    maker.add(line(0, 0, 20, 0), connector=True)
    lane = maker.add(line(0, 1, 20, 1.5))
    maker.crossings.append(square(0, -5, 20, 5))
    assert create_crew(still(maker.build(), [car(10, 0.5)])).lane.tolist() == [lane]


def test_overlapping_vehicles_are_dropped_in_input_order() -> None:
    maker = RoadMaker()
    maker.add(line(0, 0, 100, 0))
    road = maker.build()
    # the second overlaps the first; the third overlaps the dropped second only
    assert create_crew(still(road, [car(30), car(33), car(36)])).track.tolist() == [0, 2]
    assert create_crew(still(road, [car(33), car(30), car(36)])).track.tolist() == [0]
    assert create_crew(still(road, [car(30), car(34)])).track.tolist() == [0]  # touching counts


def test_ego_and_replayed_objects_are_in_the_way_but_bicycles_are_not() -> None:
    maker = RoadMaker()
    maker.add(line(0, 0, 100, 0))
    road = maker.build()
    assert create_crew(still(road, [car(30)], ego=(30, 1, 0))).track.tolist() == []
    walker = (ObjectType.PEDESTRIAN, 30.0, 0.5, 0.0, 1.0, 0.6, 0.6)
    assert create_crew(still(road, [car(30), walker])).track.tolist() == []
    rider = (ObjectType.BICYCLE, 30.0, 0.5, 0.0, 1.0, 1.8, 0.6)
    assert create_crew(still(road, [car(30), rider])).track.tolist() == [0]


def test_a_missing_speed_limit_is_taken_from_the_vehicle_before() -> None:
    maker = RoadMaker()
    maker.add(line(0, 0, 50, 0))
    maker.add(line(50, 0, 100, 0), limit=15.0)
    road = maker.build()
    assert create_crew(still(road, [car(20), car(70), car(30)])).target.tolist() == [10.0, 15.0, 15.0]


def test_the_path_ends_one_vertex_early() -> None:
    maker = RoadMaker()
    maker.add(line(0, 0, 20, 0, spacing=5.0))
    _, state, _ = first_frame(still(maker.build(), [car(18.0)]))
    np.testing.assert_allclose(state[0, :2], [15.0, 0.0], atol=1e-12)


def test_the_heading_is_interpolated_between_vertices() -> None:
    maker = RoadMaker()
    maker.add(np.array([(0, 0), (10, 0), (20, 10), (20, 20), (20, 30)], dtype=float))
    _, state, _ = first_frame(still(maker.build(), [car(5.0)]))
    np.testing.assert_allclose(state[0, Box.HEADING], np.pi / 8, atol=1e-12)


def test_objects_follow_in_the_order_of_appearance_then_of_type() -> None:
    maker = RoadMaker()
    maker.add(line(0, 0, 100, 0))
    kinds = (ObjectType.GENERIC_OBJECT, ObjectType.TRAFFIC_CONE, ObjectType.BICYCLE, ObjectType.PEDESTRIAN,
             ObjectType.CZONE_SIGN, ObjectType.BARRIER, ObjectType.PEDESTRIAN)  # fmt: skip
    objects = [(kind, 10.0 * i, 20.0, 0.0, 0.0) for i, kind in enumerate(kinds)] + [car(50)]
    scenario = still(maker.build(), objects, ego=(50, 10, 0), frames=10, start=3)
    scenario.tracks.valid[3, :5] = False  # the first pedestrian comes at sample 2
    scenario.tracks.valid[4, 3:] = False  # the sign is gone when the drive begins
    model, _, valid = first_frame(scenario)
    assert model.ids[0] == (
        "vehicle07",
        "pedestrian06",
        "barrier05",
        "traffic_cone01",
        "generic_object00",
        "pedestrian03",
    )
    assert valid.tolist() == [True, True, True, True, True, False]
    assert model.step(1, scenario.ego[:1], np.array([0.1]))[1][0].all()
    assert [ObjectType(kind) for kind in model.type[0]][:2] == [ObjectType.VEHICLE, ObjectType.PEDESTRIAN]
