"""Roads with one question each: a straight or bent street, objects on it, a light, a lane that ends elsewhere."""

from __future__ import annotations

import math

import numpy as np

from radp.metrics.score import ScenarioScore, evaluate
from radp.scenario import Scenario
from radp.scenario.neutral_json import scenario_from_json
from radp.sim.observation import HISTORY, Observation, lights_at
from radp.sim.rollout import Rollout
from radp.sim.simulate import simulate

LANE = 3.5  # m
SPLIT = (100.0, 120.0)  # the connectors lie between these distances
LENGTH = 400.0
FRAMES = 151
DT = 0.1


def street(s: np.ndarray, lateral: float, radius: float | None) -> np.ndarray:
    """(S,) distances -> (S, 2) points `lateral` to the left of a line that goes east, then bends left from 40 m on."""
    if radius is None:
        return np.stack((s, np.full_like(s, lateral)), -1)
    turn = np.maximum(0.0, s - 40.0) / radius
    x = np.minimum(s, 40.0) + radius * np.sin(turn)
    y = radius * (1.0 - np.cos(turn))
    return np.stack((x - lateral * np.sin(turn), y + lateral * np.cos(turn)), -1)


def strip(name: int, block: int, start: float, end: float, lateral: float, radius: float | None, **more) -> dict:
    """A lane or connector between two distances along the street."""
    s = np.linspace(start, end, max(2, int(end - start) + 1))
    lines = {
        key: street(s, lateral + shift, radius).tolist()
        for key, shift in (("centerline", 0.0), ("left", LANE / 2), ("right", -LANE / 2))
    }
    return {
        "id": name, "kind": "lane", "speed_limit_mps": 10.0, "roadblock_id": block, "predecessors": [],
        "successors": [], "index": 1, "stop_line_ids": [], **lines, **more,
    }  # fmt: skip


def thing(name: str, s: float, lateral: float = 0.0, speed: float = 0.0, heading: float = 0.0, **more) -> dict:
    """An object on the straight street; it appears at frame `first` and goes straight on at its speed."""
    first = more.pop("first", 0)
    frames = np.arange(first, FRAMES)
    vx, vy = speed * math.cos(heading), speed * math.sin(heading)
    row = {
        "track_id": name, "type": "VEHICLE", "length": 4.6, "width": 1.9, "frame": frames.tolist(),
        "x": (s + vx * DT * frames).tolist(), "y": (lateral + vy * DT * frames).tolist(),
        "heading": [heading] * len(frames), "vx": [vx] * len(frames), "vy": [vy] * len(frames),
    }  # fmt: skip
    return {**row, **more}


def made_scenario(
    speed: float = 8.0,
    things: tuple[dict, ...] = (),
    lights: tuple[str, ...] = (),
    radius: float | None = None,
    second_lane: bool = False,
    only_left_leads_on: bool = False,
    start: float = 20.0,
) -> Scenario:
    """Street 10 -> connectors 11 -> street 12, lane ids 101 111 121 (and 102 112 122 on the left of them).

    lights: status of the connectors, one for each second, the last one stays. The expert drives on at constant speed.
    """
    lit = {"stop_line_ids": [900]} if lights else {}
    right, left = {"index": 2}, {"index": 1}
    parts = [(1, 0.0, right)] + ([(2, LANE, left)] if second_lane else [])
    lanes = []
    for k, lateral, place in parts:
        goes_on = not (only_left_leads_on and k == 1)
        joint = {"kind": "connector", **lit}
        ends = {"successors": [110 + k]} if goes_on else {}
        lanes.append(strip(100 + k, 10, 0.0, SPLIT[0], lateral, radius, **ends, **place))
        if goes_on:
            links = {"predecessors": [100 + k], "successors": [120 + k]}
            lanes.append(strip(110 + k, 11, *SPLIT, lateral, radius, **links, **joint, **place))
            lanes.append(strip(120 + k, 12, SPLIT[1], LENGTH, lateral, radius, predecessors=[110 + k], **place))
    s = start + speed * DT * np.arange(FRAMES)
    points = street(s, 0.0, radius)
    heading = np.zeros(FRAMES) if radius is None else np.maximum(0.0, s - 40.0) / radius
    width = np.array([-LANE / 2, LANE * (len(parts) - 0.5)])
    crossing = np.concatenate(
        (street(np.array(SPLIT), width[1], radius), street(np.array(SPLIT[::-1]), width[0], radius))
    )
    states = {"x": points[:, 0], "y": points[:, 1], "heading": heading, "vx": np.full(FRAMES, speed)}
    rows = [
        {"frame": f, "lane_connector_id": lane["id"], "status": lights[min(f // 10, len(lights) - 1)]}
        for f in range(FRAMES if lights else 0)
        for lane in lanes
        if lane["kind"] == "connector"
    ]
    stop = [[SPLIT[0] - 0.5, -2.0], [SPLIT[0] + 0.5, -2.0], [SPLIT[0] + 0.5, 6.0], [SPLIT[0] - 0.5, 6.0]]
    data = {
        "name": "made", "scenario_type": "made", "dt": DT, "agents": list(things), "traffic_lights": rows,
        "expert": {"time_us": [100_000 * i for i in range(FRAMES)], **{k: v.tolist() for k, v in states.items()}},
        "route_roadblock_ids": [10, 11, 12], "mission_goal": None,
        "map": {
            "lanes": lanes, "intersections": [{"id": 700, "polygon": crossing.tolist()}],
            "drivable_areas": [{"id": 800, "polygon": crossing.tolist()}],
            "stop_lines": [{"id": 900, "polygon": stop}] if lights else [],
        },
    }  # fmt: skip
    return scenario_from_json(data)


def driven(planner, scenario: Scenario, agents: str = "nonreactive") -> tuple[Rollout, ScenarioScore]:
    """Drive one scenario to its end and score it."""
    rollout = next(iter(simulate(planner, [scenario], agents=agents, keep_plans=True)))
    assert rollout.failure is None, rollout.failure
    return rollout, evaluate(rollout)


def observed(scenarios: list[Scenario], step: int = 0) -> Observation:
    """What planners see when every world still is as its log."""
    most = max(len(scenario.tracks) for scenario in scenarios)
    batch = len(scenarios)
    agents, valid = np.zeros((batch, HISTORY, most, 5)), np.zeros((batch, HISTORY, most), dtype=bool)
    kinds, size = np.zeros((batch, most), dtype=np.uint8), np.zeros((batch, most, 3))
    ego, known = np.zeros((batch, HISTORY, 11)), np.zeros((batch, HISTORY), dtype=bool)
    times = np.zeros((batch, HISTORY), dtype=np.int64)
    for b, scenario in enumerate(scenarios):
        frames = scenario.start + step + np.arange(1 - HISTORY, 1)
        known[b], count = frames >= 0, len(scenario.tracks)
        frames = np.maximum(frames, 0)
        ego[b], times[b] = scenario.ego[frames], scenario.time_us[frames]
        agents[b, :, :count] = scenario.tracks.state[:, frames].transpose(1, 0, 2)
        valid[b, :, :count] = scenario.tracks.valid[:, frames].T & known[b, :, None]
        kinds[b, :count], size[b, :count] = scenario.tracks.type, scenario.tracks.size
    seeds = np.zeros(batch, dtype=np.uint64)
    briefings, lights = zip(*((scenario.briefing, lights_at(scenario, step)) for scenario in scenarios))
    return Observation(briefings, step, times, ego, known, agents, valid, kinds, size, lights, seeds)
