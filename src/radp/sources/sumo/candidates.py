"""Possible scenarios of a traffic log: every vehicle that may be ego, every moment that has one of the 14 kinds."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import shapely
import torch

from radp.geometry.boxes import box_corners, make_boxes
from radp.geometry.frames import pose_frame, shift_forward
from radp.scenario import PACIFICA, Box, Ego
from radp.sources.sumo.kinds import INSTANT, EgoSeries, find_kinds, tags
from radp.sources.sumo.road import SumoRoad
from radp.sources.sumo.surroundings import look_around
from radp.sources.sumo.traffic_log import TrafficLog

HISTORY = 20  # frames before the drive: 2 s
DRIVE = 151  # frames of the drive: 15 s, both ends included
TAG_AT = 30  # the tag is 3 s into the drive
MARGIN = 20  # frames that a track reaches beyond the window, where smoothing is not settled yet


@dataclass(frozen=True)
class EgoLog:
    """The smoothed drive of one possible ego from frame `first` of the log on: states (n, 11)."""

    row: int
    first: int
    states: np.ndarray

    @cached_property
    def boxes(self) -> torch.Tensor:
        """(n, 6) its boxes."""
        poses = torch.from_numpy(self.states[:, :3])
        rear_axle = pose_frame(poses)
        return make_boxes(shift_forward(rear_axle, PACIFICA.rear_axle_to_center), PACIFICA.length, PACIFICA.width)

    @cached_property
    def corners(self) -> np.ndarray:
        """(n, 4, 2) corners of its boxes."""
        return box_corners(self.boxes).numpy()


@dataclass(frozen=True)
class Candidate:
    """A possible scenario: row of the ego, frame of the tag, kind."""

    ego: int
    tag: int
    kind: str

    @property
    def start(self) -> int:
        """First frame of the drive."""
        return self.tag - TAG_AT


def ego_logs(log: TrafficLog) -> dict[int, EgoLog]:
    """Every road user that may serve as ego and is there long enough."""
    least = HISTORY + DRIVE + 2 * MARGIN
    rows = {i: motion for i, motion in log.motion.items() if len(motion.s) >= least}
    return {i: EgoLog(i, log.first(i), motion.ego_states()) for i, motion in rows.items()}


def find_candidates(
    log: TrafficLog, road: SumoRoad, egos: dict[int, EgoLog], rng: np.random.Generator
) -> list[Candidate]:
    """All tags of all egos whose window lies inside their track."""
    found = []
    for ego in egos.values():
        for kind, mask in find_kinds(_drive(ego, log, road)).items():
            mask[: MARGIN + HISTORY + TAG_AT] = False
            mask[len(mask) - (DRIVE - TAG_AT + MARGIN) :] = False
            found += [Candidate(ego.row, ego.first + t, kind) for t in tags(mask, kind in INSTANT, rng)]
    return found


def _drive(ego: EgoLog, log: TrafficLog, road: SumoRoad) -> EgoSeries:
    span = slice(ego.first, ego.first + len(ego.states))
    lane = log.lane[ego.row, span]
    ways = [road.connector(i) for i in range(len(road.map))]
    turn = np.array([way.turn if way else "" for way in ways])
    signal = np.array([bool(way and way.tls) for way in ways])
    previous = np.concatenate([lane[:1], lane[:-1]])
    known = (lane >= 0) & (previous >= 0)
    beside = (road.map.left_neighbor[previous] == lane) | (road.map.right_neighbor[previous] == lane)
    return EgoSeries(
        speed=ego.states[:, Ego.VX],
        accel=ego.states[:, Ego.AX],
        lateral=ego.states[:, Ego.AY],
        lane=lane,
        turn=np.where(lane >= 0, turn[lane], ""),
        signal=(lane >= 0) & signal[lane],
        beside=beside & known,
        in_kerb_area=_in_kerb_area(ego, log, road),
        around=look_around(ego.states, ego.row, ego.first, log),
    )


def _in_kerb_area(ego: EgoLog, log: TrafficLog, road: SumoRoad) -> np.ndarray:
    """(n,) bool: the ego's centre is in a pickup area in which another vehicle stands."""
    inside = np.zeros(len(ego.states), dtype=bool)
    span = slice(ego.first, ego.first + len(ego.states))
    for ring in road.kerb_areas:
        area = shapely.Polygon(ring)
        shapely.prepare(area)
        here = shapely.contains_xy(area, *ego.boxes[:, :2].numpy().T)
        if here.any():
            others = log.state[:, span][:, here]
            stands = log.valid[:, span][:, here] & (np.hypot(others[..., Box.VX], others[..., Box.VY]) < 0.1)
            stands &= shapely.contains_xy(area, others[..., Box.X], others[..., Box.Y])
            stands[ego.row] = False
            inside[here] |= stands.any(axis=0)
    return inside
