"""Samples of real nuPlan moments as DTPP and GameFormer keep them (.npz): 2 s of past, 8 s of future, crops of lanes.

Everything is in the ego frame of the moment. Borders, links and roadblocks of the lanes are rebuilt from their centres.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from radp.runs.errors import BadInput
from radp.scenario import DT, DT_US, Box, Ego, LightState, ObjectType, RoadMap, Scenario, Tracks, TrafficLights
from radp.sources.convert import REBUILT, UNKNOWN, FileItem, SourceError
from radp.sources.log_files import find_logs, reading
from radp.sources.roads import LaneDraft, RoadDraft, build_road, clean_line, clean_ring
from radp.sources.settings import LogChoice
from radp.storage.unpacking import read_npz_arrays

PAST, FUTURE = 21, 80
SHAPES = {
    "ego_agent_past": (PAST, 7), "ego_agent_future": (FUTURE, 3), "neighbor_agents_past": (None, PAST, 11),
    "neighbor_agents_future": (None, FUTURE, 3), "map_lanes": (None, None, 7), "map_crosswalks": (None, None, 3),
    "route_lanes": (None, None, 3),
}  # fmt: skip
LIGHTS = (LightState.GREEN, LightState.YELLOW, LightState.RED, LightState.UNKNOWN)
SAME_LINE = 0.5  # m by which the ends of a route lane may miss those of its lane
HEIGHT = 1.7  # m; samples have no heights


def read_sample(path: Path) -> Scenario:
    """The moment of a sample as a log of 101 frames whose drive begins at it."""
    arrays = _arrays(path)
    with reading(path.name, "map_lanes"):
        road, rebuilt, unknown = _road(arrays, str(arrays["map_name"]))
    with reading(path.name, "neighbor_agents_past"):
        tracks = _tracks(arrays)
    return Scenario(
        token=str(arrays["token"]),
        kind="sample",
        source="nuplan-sample",
        map=road,
        time_us=DT_US * np.arange(PAST + FUTURE),
        ego=_ego(arrays),
        tracks=tracks,
        lights=_lights(arrays, road),
        route=_route(arrays, road),
        start=PAST - 1,
        tags={REBUILT: ", ".join(rebuilt), UNKNOWN: ", ".join(unknown)},
    )


def _arrays(path: Path) -> dict[str, np.ndarray]:
    wanted = ("map_name", "token", *SHAPES)
    with reading(path.name, "not a readable sample"):
        arrays = read_npz_arrays(path, wanted)
    if missing := [name for name in wanted if name not in arrays]:
        raise SourceError(f"{path.name}: not a readable sample: {', '.join(missing)} missing")
    for name, shape in SHAPES.items():
        found = arrays[name].shape
        if len(found) != len(shape) or any(a not in (None, b) for a, b in zip(shape, found)):
            raise SourceError(f"{path.name}: {name} has shape {found}, expected {shape}")
        if arrays[name].dtype.kind not in "fiu" or not np.isfinite(arrays[name]).all():
            raise SourceError(f"{path.name}: {name} holds a value that is not finite")
        arrays[name] = arrays[name].astype(np.float64)
    return arrays


def _ego(arrays: dict[str, np.ndarray]) -> np.ndarray:
    """(101, 11): the past as stored, speeds of the future by differences."""
    ego = np.zeros((PAST + FUTURE, len(Ego)))
    ego[:PAST, : Ego.AY + 1] = arrays["ego_agent_past"]
    ego[PAST:, : Ego.HEADING + 1] = arrays["ego_agent_future"]
    step = np.diff(ego[:, :2], axis=0)[PAST - 1 :] / DT
    heading = ego[PAST:, Ego.HEADING]
    ego[PAST:, Ego.VX] = step[:, 0] * np.cos(heading) + step[:, 1] * np.sin(heading)
    ego[PAST:, Ego.AX] = np.diff(ego[PAST - 1 :, Ego.VX]) / DT
    ego[:, Ego.YAW_RATE] = np.gradient(np.unwrap(ego[:, Ego.HEADING]), DT)
    return ego


def _tracks(arrays: dict[str, np.ndarray]) -> Tracks:
    past, future = arrays["neighbor_agents_past"], arrays["neighbor_agents_future"]
    there = np.flatnonzero(np.abs(past[:, -1, :3]).sum(-1) > 0)
    state = np.zeros((len(there), PAST + FUTURE, len(Box)))
    state[:, :PAST] = past[there][..., : len(Box)]
    state[:, PAST:, :3] = future[there]
    valid = np.abs(state[..., :3]).sum(-1) > 0
    steps = np.diff(state[:, PAST - 1 :, :2], axis=1) / DT
    state[:, PAST:, Box.VX :] = steps * (valid[:, PAST:, None] & valid[:, PAST - 1 : -1, None])
    types = past[there, -1, 8:].argmax(-1).astype(np.uint8)
    assert ObjectType.BICYCLE == 2  # vehicle, pedestrian, bicycle in this order
    size = np.column_stack((past[there, -1, 6:8], np.full(len(there), HEIGHT)))
    return Tracks(tuple(f"{i}" for i in there), types, size, state * valid[..., None], valid)


def _road(arrays: dict[str, np.ndarray], name: str) -> tuple[RoadMap, tuple[str, ...], tuple[str, ...]]:
    draft = RoadDraft(name)
    for i, lane in enumerate(arrays["map_lanes"]):
        line = clean_line(lane[np.abs(lane[:, :2]).sum(-1) > 0, :2])
        if line is not None:
            draft.add(LaneDraft(str(i), line))
    for ring in arrays["map_crosswalks"]:
        area = clean_ring(ring[np.abs(ring[:, :2]).sum(-1) > 0, :2])
        if area is not None:
            draft.crosswalks.append(area)
    built = build_road(draft)
    return built.map, built.rebuilt, built.unknown


def _lights(arrays: dict[str, np.ndarray], road: RoadMap) -> TrafficLights:
    """The light of each lane at the moment, kept for all frames; lanes without one are left out."""
    shown = arrays["map_lanes"][[int(name) for name in road.lane_ids], 0, 3:]
    state = np.array([LIGHTS[i] for i in shown.argmax(-1)], dtype=np.uint8)
    lit = np.flatnonzero(np.isin(state, (LightState.GREEN, LightState.YELLOW, LightState.RED)))
    return TrafficLights(lit.astype(np.int64), np.tile(state[lit], (PAST + FUTURE, 1)))


def _route(arrays: dict[str, np.ndarray], road: RoadMap) -> tuple[str, ...]:
    """Roadblocks of the lanes that the stored route names, each before those that follow it."""
    wanted: list[int] = []
    for line in arrays["route_lanes"]:
        if not np.abs(line[:, :2]).sum() > 0:
            continue
        gap = [np.hypot(*(road.centerlines[i][[0, -1]] - line[[0, -1], :2]).T).max() for i in range(len(road))]
        if min(gap) < SAME_LINE:
            wanted.append(int(road.roadblock[int(np.argmin(gap))]))
    left, ordered = list(dict.fromkeys(wanted)), []
    while left:
        free = [b for b in left if not set(road.roadblock_predecessors[b].tolist()) & set(left) - {b}]
        ordered.append((free or left)[0])
        left.remove(ordered[-1])
    return tuple(road.roadblocks.ids[block] for block in ordered)


class NuPlanSample:
    """Samples (.npz) under `data`."""

    name = "nuplan-sample"

    def items(self, options: LogChoice) -> list[FileItem]:
        if options.ego != "sdc":
            raise BadInput("a sample has one ego: leave --ego at sdc")
        return find_logs(options, (".npz",))

    def scenarios(self, item: FileItem) -> Iterator[Scenario]:
        yield read_sample(item.path)


NUPLAN_SAMPLE = NuPlanSample()
