"""One world at one moment, from the closed loop or from a log: what features are made of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from radp.road.road_map import RoadMap
from radp.scenario import DT, DT_US, PACIFICA, Ego, Scenario
from radp.scenario.as_ego import ego_from_track
from radp.scenario.history import ego_before
from radp.scene.builder import Moment
from radp.sim.observation import HISTORY, Observation

FUTURE = 80


@dataclass(frozen=True)
class WorldView:
    """k >= 21 frames of 0.1 s, the last one is now; f >= 0 frames after it; A objects. World frame."""

    road: RoadMap
    route: tuple[str, ...]  # roadblock ids as given
    start: np.ndarray  # (3,) rear axle where the drive began
    time_us: np.ndarray  # (k,)
    ego: np.ndarray  # (k, 11) columns Ego
    agents: np.ndarray  # (k, A, 5) columns Box
    valid: np.ndarray  # (k, A)
    types: np.ndarray  # (A,) ObjectType
    sizes: np.ndarray  # (A, 3) length, width, height
    light_lanes: np.ndarray  # (C,) lanes
    light_states: np.ndarray  # (C,) LightState
    future_ego: np.ndarray  # (f, 11)
    future_agents: np.ndarray  # (f, A, 5)
    future_valid: np.ndarray  # (f, A)

    @property
    def pose(self) -> np.ndarray:
        """(3,) rear axle now."""
        return self.ego[-1, : Ego.HEADING + 1]

    @property
    def centre(self) -> np.ndarray:
        """(2,) centre of the ego's box now."""
        x, y, heading = self.pose
        return np.array([x, y]) + PACIFICA.rear_axle_to_center * np.array([np.cos(heading), np.sin(heading)])


def views_of(observation: Observation) -> Iterator[WorldView]:
    """The worlds of an observation, one by one; no future. Where a drive has no history, the ego kept its speed."""
    for b, briefing in enumerate(observation.briefings):
        agents, time_us, ego = observation.agents[b], observation.time_us[b], observation.ego[b]
        if missing := int(np.argmax(observation.ego_valid[b])):
            steps = np.arange(-missing, 0)
            ego = np.concatenate((ego_before(ego[missing], steps * DT), ego[missing:]))
            time_us = np.concatenate((time_us[missing] + steps * DT_US, time_us[missing:]))
        lanes, states = observation.lights(b)
        yield WorldView(
            briefing.map, briefing.route, briefing.pose, time_us, ego, agents,
            observation.agent_valid[b], observation.agent_type[b], observation.agent_size[b], lanes, states,
            np.zeros((0, len(Ego))), agents[:0], observation.agent_valid[b, :0],
        )  # fmt: skip


def view_of_log(scenario: Scenario, frame: int, history: int = HISTORY, future: int = FUTURE) -> WorldView:
    """A frame of a log (counted from its first one) with what came after it; the drive begins at this frame."""
    past, after = slice(frame - history + 1, frame + 1), slice(frame + 1, frame + 1 + future)
    if past.start < 0 or after.stop > len(scenario.time_us):
        raise ValueError(f"scenario {scenario.token!r}: frame {frame} lacks {history} frames of past or {future} after")
    states, valid = scenario.tracks.state.transpose(1, 0, 2), scenario.tracks.valid.T
    return WorldView(
        scenario.map, scenario.route, scenario.ego[frame, :3], scenario.time_us[past], scenario.ego[past],
        states[past], valid[past], scenario.tracks.type, scenario.tracks.size, scenario.lights.lane,
        scenario.lights.state[frame], scenario.ego[after], states[after], valid[after],
    )  # fmt: skip


def view_of_moment(moment: Moment) -> WorldView:
    """A log sample, whose ego may be any vehicle of the log; its states follow from its track."""
    assert moment.future_states is not None and moment.future_valid is not None  # samples have a future
    ego, past = moment.skip, len(moment.states)
    boxes = np.concatenate((moment.states[:, ego], moment.future_states[:, ego]))
    time_us = DT_US * np.arange(len(boxes))
    states = ego_from_track(boxes, moment.sizes[ego], time_us)
    states[:, :2] += moment.pose[:2] - states[past - 1, :2]  # shorter cars have their axle nearer to the centre
    names = tuple(moment.road_map.roadblocks.ids[block] for block in moment.route)
    others = np.arange(len(moment.types)) != ego
    return WorldView(
        moment.road_map, names, moment.pose, time_us[:past], states[:past], moment.states, moment.valid & others,
        moment.types, moment.sizes, moment.light_lanes, moment.light_states, states[past:], moment.future_states,
        moment.future_valid & others,
    )  # fmt: skip
