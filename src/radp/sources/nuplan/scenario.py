"""A scenario out of a log and the map of its city."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from radp.scenario import Ego, RoadMap, Scenario, Tracks, TrafficLights
from radp.sources.convert import UNKNOWN, SourceError
from radp.sources.nuplan.cut import RADIUS, open_city
from radp.sources.nuplan.layers import find_map
from radp.sources.nuplan.log_db import Boxes, LogDb, Pick
from radp.sources.nuplan.window import frames_with_history
from radp.sources.sound import check_ego, room_for


def read_scenario(log: LogDb, pick: Pick, maps: Path, radius: float = RADIUS) -> Scenario:
    """The scenario of a tag: 15 s from 3 s before it at 10 Hz, 2 s of history, and the road within `radius`."""
    frames, start = frames_with_history(log, pick)
    if len(frames.tokens) - start < 2:
        raise SourceError(f"{log.path}: scenario {pick.token} has no frames in its time")
    missing = np.flatnonzero(~np.isfinite(frames.ego).all(1))
    if len(missing):
        raise SourceError(f"{log.path}: frame {frames.tokens[missing[0]].hex()} has no ego pose")
    check_ego(frames.ego)
    route, goal = log.route_and_goal(pick.token)
    road = open_city(find_map(maps, pick.map), pick.map.removesuffix(".gpkg")).around(
        frames.ego[start:, [Ego.X, Ego.Y]], route, radius
    )
    boxes = log.boxes(frames.tokens)
    tags = {"log": log.path.stem, "map": road.name}
    if not np.isfinite(boxes.state[:, 3:]).all():
        tags[UNKNOWN] = "velocities"
    return Scenario(
        token=pick.token,
        kind=pick.kind,
        source="nuplan",
        map=road,
        time_us=frames.time_us,
        ego=frames.ego,
        tracks=tracks_of(boxes, len(frames.tokens), start),
        lights=lights_of(log, frames.tokens, road),
        route=route,
        goal=goal,
        start=start,
        tags=tags,
    )


def tracks_of(boxes: Boxes, frames: int, start: int) -> Tracks:
    """Tracks in detection order: by the frame of the drive in which they appear, then by type, then as in the file.

    Tracks that exist in the history only stand last. The size of a track is that of its first box in this order.
    """
    since_start = (boxes.frame - start) % frames  # frames of the history behind those of the drive
    order = np.lexsort((np.arange(len(boxes.frame)), boxes.type[boxes.track], since_start))
    chosen, first = np.unique(boxes.track[order], return_index=True)
    by_appearance = np.argsort(first)
    chosen, first = chosen[by_appearance], order[first[by_appearance]]
    room_for(len(chosen), frames)
    place = np.zeros(len(boxes.tracks), dtype=np.int64)
    place[chosen] = np.arange(len(chosen))
    state = np.zeros((len(chosen), frames, boxes.state.shape[1]))
    valid = np.zeros((len(chosen), frames), dtype=bool)
    state[place[boxes.track], boxes.frame] = np.concatenate((boxes.state[:, :3], np.nan_to_num(boxes.state[:, 3:])), 1)
    valid[place[boxes.track], boxes.frame] = True
    return Tracks(
        ids=tuple(boxes.tracks[i].hex() for i in chosen),
        type=boxes.type[chosen],
        size=boxes.size[first],
        state=state,
        valid=valid,
    )


def lights_of(log: LogDb, frames: list[bytes], road: RoadMap) -> TrafficLights:
    """Lights of the connectors that the road has; those of connectors further away are left out."""
    known = {name: lane for name, lane in road.lane_index.items() if road.is_connector[lane]}
    known |= {name[:-1]: lane for name, lane in known.items() if name.endswith("c")}  # those that share a lane's number
    frame, connectors, which, state = log.lights(frames)
    lane = np.array([known.get(name, -1) for name in connectors], dtype=np.int64)[which]
    near = lane >= 0
    columns, column = np.unique(lane[near], return_inverse=True)
    states = np.zeros((len(frames), len(columns)), dtype=np.uint8)
    states[frame[near], column] = state[near]
    return TrafficLights(columns, states)
