"""A scenario small enough to know by heart: two lanes, one connector with a light, two objects, six frames."""

from __future__ import annotations

import numpy as np

from radp.geometry.ragged import Polygons, Ragged
from radp.scenario import NO_AREAS, Areas, LightState, ObjectType, RoadMap, Scenario, Tracks, TrafficLights

FRAMES = 6


def line(y: float, x0: float, x1: float) -> np.ndarray:
    x = np.linspace(x0, x1, 5)
    return np.stack((x, np.full(5, y)), axis=1)


def small_map(shift: float = 0.0) -> RoadMap:
    """Lane "1" left of lane "2", and connector "7" behind lane "2"; `shift` moves all of it along x."""
    spans = [(2.0, 0.0, 40.0), (-2.0, 0.0, 40.0), (-2.0, 40.0, 60.0)]
    spans = [(y, x0 + shift, x1 + shift) for y, x0, x1 in spans]
    left = [line(y + 2.0, x0, x1) for y, x0, x1 in spans]
    right = [line(y - 2.0, x0, x1) for y, x0, x1 in spans]
    polygons = [np.concatenate((a, b[::-1])) for a, b in zip(left, right)]
    corners = [[39.0, -4.0], [40.0, -4.0], [40.0, 0.0], [39.0, 0.0]]
    stop = np.add(corners, (shift, 0.0))
    return RoadMap(
        lane_ids=("1", "2", "7"),
        is_connector=np.array([False, False, True]),
        centerlines=Ragged.from_rows([line(*span) for span in spans], width=2),
        left=Ragged.from_rows(left, width=2),
        right=Ragged.from_rows(right, width=2),
        lane_polygons=Polygons.from_exteriors(polygons),
        speed_limit=np.array([13.4, 13.4, 0.0]),
        has_speed_limit=np.array([True, True, False]),
        predecessors=Ragged.from_rows([[], [], [1]], dtype=np.int64),
        successors=Ragged.from_rows([[], [2], []], dtype=np.int64),
        left_neighbor=np.array([-1, 0, -1]),
        right_neighbor=np.array([1, -1, -1]),
        roadblock=np.array([0, 0, 1]),
        lane_stop_lines=Ragged.from_rows([[], [], [0]], dtype=np.int64),
        roadblocks=Areas(("10", "20"), Polygons.from_rings([polygons[:2], polygons[2:]])),
        intersections=Areas(("30",), Polygons.from_exteriors([polygons[2]])),
        drivable=NO_AREAS,
        stop_lines=Areas(("40",), Polygons.from_exteriors([stop])),
        crosswalks=NO_AREAS,
        name="small",
    )


def small_scenario(token: str = "small", kind: str = "following_lane", shift: float = 0.0) -> Scenario:
    """The ego drives at 10 m/s on lane "2"; a car ahead of it appears in frame 2, a cone stands all the time."""
    time = np.arange(FRAMES) * 0.1
    ego = np.zeros((FRAMES, 11))
    ego[:, 0], ego[:, 1], ego[:, 3] = np.round(5.0 + shift + 10.0 * time, 3), -2.0, 10.0
    state = np.zeros((2, FRAMES, 5))
    state[0, 2:, 0], state[0, 2:, 1], state[0, 2:, 3] = np.round(25.0 + shift + 9.9 * time[2:], 3), -2.0, 9.9
    state[1, :, 0], state[1, :, 1] = 30.0 + shift, -5.0
    valid = np.ones((2, FRAMES), dtype=bool)
    valid[0, :2] = False
    lights = np.full((FRAMES, 1), LightState.GREEN, dtype=np.uint8)
    lights[3:] = LightState.RED
    return Scenario(
        token=token,
        kind=kind,
        source="hand",
        map=small_map(shift),
        time_us=1_000_000 + np.arange(FRAMES, dtype=np.int64) * 100_000,
        ego=ego,
        tracks=Tracks(
            ids=("car", "cone"),
            type=np.array([ObjectType.VEHICLE, ObjectType.TRAFFIC_CONE], dtype=np.uint8),
            size=np.array([[4.5, 1.8, 1.6], [0.4, 0.4, 0.8]]),
            state=state,
            valid=valid,
        ),
        lights=TrafficLights(lane=np.array([2]), state=lights),
        route=("10", "20"),
        goal=np.array([55.0 + shift, -2.0, 0.0]),
        start=1,
        tags={"hazard": "none"},
    )


def assert_same(a: object, b: object) -> None:
    """Equal in every bit of every field."""
    from dataclasses import fields, is_dataclass

    assert type(a) is type(b)
    if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
        assert a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
    elif is_dataclass(a):
        for field in fields(a):
            assert_same(getattr(a, field.name), getattr(b, field.name))
    else:
        assert a == b
