"""The objects of a Scene: which ones, in which order, their past and, for training, their future."""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from radp.geometry.kernels import wrap_angle
from radp.scenario import ObjectType
from radp.scene.scene import StaticColumn

VEHICLE = int(ObjectType.VEHICLE)
LAST_MOVING_TYPE = int(ObjectType.BICYCLE)
FIRST_STATIC_TYPE = LAST_MOVING_TYPE + 1
NOBODY = -1
STATIC_COLUMNS = np.zeros(len(ObjectType), dtype=np.int64)  # ObjectType -> one-hot column of `static_objects`
STATIC_COLUMNS[ObjectType.CZONE_SIGN] = StaticColumn.IS_SIGN
STATIC_COLUMNS[ObjectType.BARRIER] = StaticColumn.IS_BARRIER
STATIC_COLUMNS[ObjectType.TRAFFIC_CONE] = StaticColumn.IS_CONE
STATIC_COLUMNS[ObjectType.GENERIC_OBJECT] = StaticColumn.IS_GENERIC


@njit(cache=True, nogil=True)
def nearest_objects(
    states: np.ndarray, valid: np.ndarray, types: np.ndarray, static: bool, skip: int, pose: np.ndarray
) -> np.ndarray:
    """states (A, 5), valid (A,) of one frame -> (n,) objects of the wanted sort in it, nearest to the pose first."""
    count = 0
    found = np.empty(len(types), np.int64)
    gaps = np.empty(len(types))
    for a in range(len(types)):
        if valid[a] and (types[a] >= FIRST_STATIC_TYPE) == static and a != skip:
            found[count], gaps[count] = a, math.hypot(states[a, 0] - pose[0], states[a, 1] - pose[1])
            count += 1
    return found[:count][np.argsort(gaps[:count], kind="mergesort")]


@njit(cache=True, nogil=True)
def thin_out(nearest: np.ndarray, types: np.ndarray, most: int, walkers: int) -> np.ndarray:
    """(n,) agents by distance -> at most `most` of them, order kept.

    If there are too many, the `walkers` nearest pedestrians and bicycles and all vehicles come first; further
    pedestrians and bicycles only fill what is left.
    """
    if len(nearest) <= most:
        return nearest
    if most == 0:
        return nearest[:0]
    vehicles = 0
    for a in nearest:
        vehicles += types[a] == VEHICLE
    quota = max(walkers, most - vehicles)
    kept, count = np.empty(most, np.int64), 0
    for a in nearest:
        if types[a] != VEHICLE:
            if quota == 0:
                continue
            quota -= 1
        kept[count] = a
        count += 1
        if count == most:
            break
    return kept[:count]


@njit(cache=True, nogil=True)
def write_past(
    chosen: np.ndarray,
    states: np.ndarray,
    valid: np.ndarray,
    types: np.ndarray,
    sizes: np.ndarray,
    pose: np.ndarray,
    out: np.ndarray,
) -> None:
    """chosen (n,) of states (k, A, 5), valid (k, A), the last frame is now -> rows of out (most, K, 11), k <= K.

    A frame in which an agent is missing, or that lies before the log, repeats the next later one in which it is known.
    """
    c, s = math.cos(pose[2]), math.sin(pose[2])
    frames, steps = len(states), out.shape[1]
    for row in range(len(chosen)):
        a = chosen[row]
        known = frames - 1
        for back in range(steps):
            now = frames - 1 - back
            if now >= 0 and valid[now, a]:
                known = now
            x, y = states[known, a, 0] - pose[0], states[known, a, 1] - pose[1]
            heading = states[known, a, 2] - pose[2]
            vx, vy = states[known, a, 3], states[known, a, 4]
            step = out[row, steps - 1 - back]
            step[0], step[1] = c * x + s * y, c * y - s * x
            step[2], step[3] = math.cos(heading), math.sin(heading)
            step[4], step[5] = c * vx + s * vy, c * vy - s * vx
            step[6], step[7] = sizes[a, 1], sizes[a, 0]
            step[8 + types[a]] = 1.0


@njit(cache=True, nogil=True)
def write_static(
    chosen: np.ndarray,
    states: np.ndarray,
    types: np.ndarray,
    sizes: np.ndarray,
    columns: np.ndarray,
    pose: np.ndarray,
    out: np.ndarray,
) -> None:
    """chosen (n,) of states (A, 5) of this frame -> rows of out (most, 10)."""
    c, s = math.cos(pose[2]), math.sin(pose[2])
    for row in range(len(chosen)):
        a = chosen[row]
        x, y = states[a, 0] - pose[0], states[a, 1] - pose[1]
        heading = states[a, 2] - pose[2]
        out[row, 0], out[row, 1] = c * x + s * y, c * y - s * x
        out[row, 2], out[row, 3] = math.cos(heading), math.sin(heading)
        out[row, 4], out[row, 5] = sizes[a, 1], sizes[a, 0]
        out[row, columns[types[a]]] = 1.0


@njit(cache=True, nogil=True)
def write_objects(
    states: np.ndarray,
    valid: np.ndarray,
    types: np.ndarray,
    sizes: np.ndarray,
    columns: np.ndarray,
    skip: int,
    walkers: int,
    pose: np.ndarray,
    out_past: np.ndarray,
    out_tracks: np.ndarray,
    out_static: np.ndarray,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Choose and write the agents, who they are, and the static objects of one moment.

    Returns the agents (n,) in row order, and all road users and static objects there are, nearest first.
    """
    now = len(states) - 1
    moving = nearest_objects(states[now], valid[now], types, False, skip, pose)
    standing = nearest_objects(states[now], valid[now], types, True, skip, pose)
    chosen = thin_out(moving, types, len(out_past), walkers)
    write_past(chosen, states, valid, types, sizes, pose, out_past)
    out_tracks[: len(chosen)] = chosen
    write_static(standing[: len(out_static)], states[now], types, sizes, columns, pose, out_static)
    return chosen, moving, standing


@njit(cache=True, nogil=True)
def write_rule_objects(
    moving: np.ndarray,
    standing: np.ndarray,
    states: np.ndarray,
    types: np.ndarray,
    sizes: np.ndarray,
    walkers: int,
    most: int,
    pose: np.ndarray,
    out: np.ndarray,
    out_tracks: np.ndarray,
) -> np.ndarray:
    """Road users and static objects nearest first, states (A, 5) now -> rows of out (N, 8), out_tracks (N,).

    The first `most` rows are for road users, thinned out as agents are; returns these (n,) in row order.
    """
    chosen = thin_out(moving, types, most, walkers)
    write_boxes(chosen, states, sizes, True, pose, out, out_tracks)
    write_boxes(standing[: len(out) - most], states, sizes, False, pose, out[most:], out_tracks[most:])
    return chosen


@njit(cache=True, nogil=True)
def write_boxes(
    chosen: np.ndarray,
    states: np.ndarray,
    sizes: np.ndarray,
    moves: bool,
    pose: np.ndarray,
    out: np.ndarray,
    out_tracks: np.ndarray,
) -> None:
    """chosen (n,) of states (A, 5) now -> rows of out (most, 8), out_tracks (most,); no velocity unless it `moves`."""
    c, s = math.cos(pose[2]), math.sin(pose[2])
    for row in range(len(chosen)):
        a, box = chosen[row], out[row]
        x, y = states[a, 0] - pose[0], states[a, 1] - pose[1]
        heading = states[a, 2] - pose[2]
        box[0], box[1] = c * x + s * y, c * y - s * x
        box[2], box[3] = math.cos(heading), math.sin(heading)
        if moves:
            vx, vy = states[a, 3], states[a, 4]
            box[4], box[5] = c * vx + s * vy, c * vy - s * vx
        box[6], box[7] = sizes[a, 0], sizes[a, 1]
        out_tracks[row] = a


@njit(cache=True, nogil=True)
def write_futures(chosen: np.ndarray, states: np.ndarray, valid: np.ndarray, pose: np.ndarray, out: np.ndarray) -> None:
    """chosen (n,) of states (f, A, 5), valid (f, A) after now -> rows of out (N, T, 3), zeros where not tracked."""
    c, s = math.cos(pose[2]), math.sin(pose[2])
    for row in range(min(len(chosen), len(out))):
        a = chosen[row]
        for t in range(min(len(states), out.shape[1])):
            if valid[t, a]:
                x, y = states[t, a, 0] - pose[0], states[t, a, 1] - pose[1]
                out[row, t, 0], out[row, t, 1] = c * x + s * y, c * y - s * x
                out[row, t, 2] = wrap_angle(states[t, a, 2] - pose[2])
