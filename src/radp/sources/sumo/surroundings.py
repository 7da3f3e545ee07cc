"""What an ego has around it in every frame: leader, crowd, people on crossings."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numba import njit

from radp.geometry.kernels import box_corners, quad_distance, quads_intersect, wrap_angle
from radp.scenario import PACIFICA, ObjectType

if TYPE_CHECKING:
    from radp.sources.sumo.traffic_log import TrafficLog

REACH = 40.0  # [m] how far a leader is looked for
LEAD_LATERAL = 1.2  # [m]
CROWD = 8.0  # [m] between boxes
MOVING = 0.5  # [m/s]
IGNORED = 255  # parked cars are no traffic


@dataclass(frozen=True)
class Surroundings:
    """Per frame (T,): gap to, lateral offset, speed and length of the leader (inf where none); vehicles within 8 m,
    those of them that move; distance to a person on a crossing ahead."""

    lead_gap: np.ndarray
    lead_lateral: np.ndarray
    lead_speed: np.ndarray
    lead_length: np.ndarray
    near: np.ndarray
    near_moving: np.ndarray
    person_gap: np.ndarray


def look_around(ego: np.ndarray, itself: int, first: int, log: TrafficLog) -> Surroundings:
    """ego (n, 11) from frame `first` of a TrafficLog on; `itself` is its row there."""
    out = np.zeros((len(ego), 7))
    kind = np.where(np.array(log.category) == "parked", IGNORED, log.type)
    span = slice(first, first + len(ego))
    _look(ego, itself, log.state[:, span], log.valid[:, span], log.size, kind, log.crossing[:, span], out)
    return Surroundings(*out.T)


@njit(cache=True)
def _look(
    ego: np.ndarray, itself: int, state: np.ndarray, valid: np.ndarray, size: np.ndarray, kind: np.ndarray,
    crossing: np.ndarray, out: np.ndarray,
) -> None:  # fmt: skip
    mine, other = np.empty((4, 2)), np.empty((4, 2))
    for t in range(len(ego)):
        heading, cx, cy = _center(ego[t])
        c, s = math.cos(heading), math.sin(heading)
        box_corners(cx, cy, heading, PACIFICA_LENGTH, PACIFICA_WIDTH, mine)
        out[t, 0], out[t, 6] = np.inf, np.inf
        for a in range(len(state)):
            if a == itself or not valid[a, t]:
                continue
            dx, dy = state[a, t, 0] - cx, state[a, t, 1] - cy
            if dx * dx + dy * dy > REACH * REACH:
                continue
            lon, lat = c * dx + s * dy, -s * dx + c * dy
            gap = lon - PACIFICA_LENGTH / 2 - size[a, 0] / 2
            if kind[a] == PEDESTRIAN:
                if crossing[a, t] == 1 and lon > 0.0 and abs(lat) < 7.0:
                    out[t, 6] = min(out[t, 6], math.hypot(lon - PACIFICA_LENGTH / 2, lat))
                continue
            if kind[a] != VEHICLE:
                continue
            speed = math.hypot(state[a, t, 3], state[a, t, 4])
            aligned = abs(wrap_angle(state[a, t, 2] - heading)) < 0.6
            if aligned and lon > 0.0 and abs(lat) < LEAD_LATERAL and gap < out[t, 0]:
                out[t, 0], out[t, 1], out[t, 2], out[t, 3] = gap, abs(lat), speed, size[a, 0]
            if math.hypot(dx, dy) < CROWD + (PACIFICA_LENGTH + size[a, 0]) / 2 + 2.0:
                box_corners(state[a, t, 0], state[a, t, 1], state[a, t, 2], size[a, 0], size[a, 1], other)
                if quad_distance(mine, other) < CROWD:
                    out[t, 4] += 1.0
                    out[t, 5] += 1.0 if speed > MOVING else 0.0


PACIFICA_LENGTH, PACIFICA_WIDTH, TO_CENTER = PACIFICA.length, PACIFICA.width, PACIFICA.rear_axle_to_center
PEDESTRIAN, VEHICLE = int(ObjectType.PEDESTRIAN), int(ObjectType.VEHICLE)


@njit(cache=True, inline="always")
def _center(ego: np.ndarray) -> tuple[float, float, float]:
    x, y, heading = ego[0], ego[1], ego[2]
    return heading, x + TO_CENTER * math.cos(heading), y + TO_CENTER * math.sin(heading)


@njit(cache=True)
def first_overlap(
    ego: np.ndarray, itself: int, state: np.ndarray, valid: np.ndarray, size: np.ndarray, margin: float
) -> int:
    """Row of the first road user whose box touches the ego's, widened by `margin` on all sides; -1 when none does."""
    mine, other = np.empty((4, 2)), np.empty((4, 2))
    for t in range(len(ego)):
        heading, cx, cy = _center(ego[t])
        box_corners(cx, cy, heading, PACIFICA_LENGTH + 2 * margin, PACIFICA_WIDTH + 2 * margin, mine)
        for a in range(len(state)):
            if a == itself or not valid[a, t]:
                continue
            if math.hypot(state[a, t, 0] - cx, state[a, t, 1] - cy) > (PACIFICA_LENGTH + size[a, 0]) / 2 + 3.0:
                continue
            box_corners(state[a, t, 0], state[a, t, 1], state[a, t, 2], size[a, 0], size[a, 1], other)
            if quads_intersect(mine, other):
                return a
    return -1
