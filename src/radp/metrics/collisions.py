"""no_ego_at_fault_collisions: with whom the ego collided, how, and whether a better plan could have avoided it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numba import njit

from radp.geometry.kernels import box_corners, quads_intersect, segment_intersects_quad
from radp.metrics.drive import HEADING, LENGTH, WIDTH, Drive, X, Y
from radp.metrics.metric import Metric
from radp.scenario import ObjectType

STOPPED_SPEED = 0.05  # m/s, of the ego and of objects
COS_BEHIND = math.cos(math.radians(150.0))
ALLOWED = {"vru": 0, "vehicle": 0, "object": 1}  # collisions that do not bring the score to 0
EGO_RADIUS = math.hypot(LENGTH, WIDTH) / 2.0


class CollisionType(IntEnum):
    """First match in this order."""

    STOPPED_EGO = 0
    STOPPED_TRACK = 1
    ACTIVE_REAR = 2
    ACTIVE_FRONT = 3
    ACTIVE_LATERAL = 4


STOPPED_EGO, STOPPED_TRACK, ACTIVE_REAR, ACTIVE_FRONT, ACTIVE_LATERAL = (int(kind) for kind in CollisionType)


@dataclass(frozen=True)
class Contact:
    """First contact with one object."""

    frame: int
    time_us: int
    agent: int  # row of the rollout's tracks
    track: str
    object: ObjectType
    type: CollisionType
    at_fault: bool
    delta_v: float  # m/s, half the relative speed


@dataclass(frozen=True)
class CollisionResult:
    """metric, the list in order of time, and per object (A,) the first frame of contact (-1 = none) and the verdict."""

    metric: Metric
    collisions: tuple[Contact, ...]
    first_frame: np.ndarray
    at_fault: np.ndarray


def collisions(drive: Drive, connected: np.ndarray, ids: tuple[str, ...], types: np.ndarray) -> CollisionResult:
    """connected (S,): samples of the set C, in which a lateral collision is not the ego's fault."""
    first_frame, kinds, delta_v = find_collisions(drive)
    at_fault = np.zeros(len(ids), dtype=bool)
    rows = sorted(np.flatnonzero(first_frame >= 0), key=lambda a: first_frame[a])  # stable: detection order in a frame
    listed = []
    for a in rows:
        frame, kind = int(first_frame[a]), CollisionType(kinds[a])
        at_fault[a] = kind in (STOPPED_TRACK, ACTIVE_FRONT) or (kind == ACTIVE_LATERAL and not connected[frame])
        time, met = int(drive.time_us[frame]), ObjectType(types[a])
        listed.append(Contact(frame, time, int(a), ids[a], met, kind, bool(at_fault[a]), float(delta_v[a])))
    counts = dict.fromkeys(ALLOWED, 0)
    for collision in listed:
        counts[object_group(collision.object)] += collision.at_fault
    value = 1.0
    for group, allowed in ALLOWED.items():
        value *= max(0.0, 1.0 - counts[group] / (allowed + 1))
    return CollisionResult(Metric(value), tuple(listed), first_frame, at_fault)


def object_group(kind: ObjectType) -> str:
    """vru, vehicle or object."""
    if kind == ObjectType.VEHICLE:
        return "vehicle"
    return "vru" if kind in (ObjectType.PEDESTRIAN, ObjectType.BICYCLE) else "object"


@njit(cache=True, nogil=True)
def is_behind(dx: float, dy: float, cos_heading: float, sin_heading: float) -> bool:
    """Whether the angle between a heading and the way (dx, dy) to an object is larger than 150 degrees."""
    return cos_heading * dx + sin_heading * dy < COS_BEHIND * math.sqrt(dx * dx + dy * dy)


@njit(cache=True, nogil=True)
def find_collisions(drive: Drive) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Per object (A,): first frame of contact or -1, CollisionType, delta v."""
    agents, samples = drive.agent_valid.shape
    first, kind, delta_v = np.full(agents, -1, np.int64), np.zeros(agents, np.int64), np.zeros(agents)
    box = np.empty((4, 2))
    for a in range(agents):
        length, width = drive.agent_size[a, 0], drive.agent_size[a, 1]
        reach = EGO_RADIUS + math.hypot(length, width) / 2.0 + 1e-6
        for i in range(samples):
            x, y = drive.agent_state[a, i, X], drive.agent_state[a, i, Y]
            dx, dy = x - drive.center[i, 0], y - drive.center[i, 1]
            if not drive.agent_valid[a, i] or dx * dx + dy * dy > reach * reach:
                continue
            box_corners(x, y, drive.agent_state[a, i, HEADING], length, width, box)
            if quads_intersect(drive.corners[i], box):
                first[a] = i
                kind[a] = _classify(drive, a, i, box)
                delta_v[a] = _delta_v(drive, a, i)
                break
    return first, kind, delta_v


@njit(cache=True, nogil=True)
def _classify(drive: Drive, a: int, i: int, box: np.ndarray) -> int:
    if drive.speed[i] <= STOPPED_SPEED:
        return STOPPED_EGO
    if drive.agent_static[a] or drive.agent_speed[a, i] <= STOPPED_SPEED:
        return STOPPED_TRACK
    ego, other = drive.ego[i], drive.agent_state[a, i]
    if is_behind(other[X] - ego[X], other[Y] - ego[Y], math.cos(ego[HEADING]), math.sin(ego[HEADING])):
        return ACTIVE_REAR
    front_left, front_right = drive.corners[i, 0], drive.corners[i, 3]
    if segment_intersects_quad(front_left[0], front_left[1], front_right[0], front_right[1], box):
        return ACTIVE_FRONT
    return ACTIVE_LATERAL


@njit(cache=True, nogil=True)
def _delta_v(drive: Drive, a: int, i: int) -> float:
    """0.5 sqrt(ve^2 + vo^2 - 2 ve vo cos(heading difference)): two bodies of equal mass."""
    ego, other = drive.speed[i], drive.agent_speed[a, i]
    turn = drive.ego[i, HEADING] - drive.agent_state[a, i, HEADING]
    return 0.5 * math.sqrt(max(0.0, ego * ego + other * other - 2.0 * ego * other * math.cos(turn)))
