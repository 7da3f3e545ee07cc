"""The arrays of a batch of reactive worlds, in the layout that the compiled step reads and writes.

B worlds, each with N agents, the ego, O replayed objects and room for K stop lines. The rows of all worlds follow each
other: agent a of world b is row b N + a of the fleet, and slot k of world b is row b S + k of the claims, with the
S = N + 1 + O + K slots in the order agents, ego, objects, stop lines.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MAX_ROUTE = 5  # segments of a route that are remembered
MAX_STOPS = 16  # stop lines that can hold one agent at a time
BOX, SWEEP = 0, 1  # the two pieces of a claim


class Fleet(NamedTuple):
    """G = B N agents in creation order."""

    x: np.ndarray  # (G,) box centre
    y: np.ndarray  # (G,)
    target: np.ndarray  # (G,) m/s wanted in free traffic
    progress: np.ndarray  # (G,) m along the path
    length: np.ndarray  # (G,)
    width: np.ndarray  # (G,)
    path: np.ndarray  # (G P, 4) x, y, heading (continuous), progress; P rows each
    path_count: np.ndarray  # (G,)
    route: np.ndarray  # (G, 5) lanes, oldest first
    route_count: np.ndarray  # (G,)
    sweep: np.ndarray  # (G, W, 2) line from half a length behind the centre to 1.5 s ahead of the front
    sweep_count: np.ndarray  # (G,), 0 before the first move


class Claims(NamedTuple):
    """B S slots: what occupies the road. A claim is the union of two rings, either of which may be empty.

    Piece p (a box or a stop line; a sweep) of row q is point[(2 q + p) R :][: piece_size[q, p]], R points of room.
    """

    present: np.ndarray  # (B S,) bool
    speed: np.ndarray  # (B S,) m/s
    heading: np.ndarray  # (B S,)
    point: np.ndarray  # (2 B S R, 2)
    piece_size: np.ndarray  # (B S, 2)
    bounds: np.ndarray  # (B S, 4)


class Stage(NamedTuple):
    """F = most frames of any world: what the log gives. The step only reads it."""

    first_lane: np.ndarray  # (B,) index of the world's lane 0 in the rails
    last_frame: np.ndarray  # (B,)
    light_column: np.ndarray  # (B, L) column of a lane's light, -1 = none
    light_state: np.ndarray  # (B, F, C) uint8 LightState
    object_state: np.ndarray  # (B, F, O, 5)
    object_valid: np.ndarray  # (B, F, O) bool
    object_size: np.ndarray  # (B, O, 2) length, width


def empty_fleet(agents: int, path: int, sweep: int) -> Fleet:
    """`agents` rows with room for `path` vertices and `sweep` points of a sweep line each."""
    return Fleet(
        x=np.zeros(agents),
        y=np.zeros(agents),
        target=np.zeros(agents),
        progress=np.zeros(agents),
        length=np.zeros(agents),
        width=np.zeros(agents),
        path=np.zeros((agents * path, 4)),
        path_count=np.zeros(agents, dtype=np.int64),
        route=np.zeros((agents, MAX_ROUTE), dtype=np.int64),
        route_count=np.zeros(agents, dtype=np.int64),
        sweep=np.zeros((agents, sweep, 2)),
        sweep_count=np.zeros(agents, dtype=np.int64),
    )


def empty_claims(slots: int, room: int) -> Claims:
    """`slots` rows with room for `room` points per ring."""
    return Claims(
        present=np.zeros(slots, dtype=bool),
        speed=np.zeros(slots),
        heading=np.zeros(slots),
        point=np.zeros((2 * slots * room, 2)),
        piece_size=np.zeros((slots, 2), dtype=np.int64),
        bounds=np.zeros((slots, 4)),
    )


def double_room(array: np.ndarray, rows: int) -> np.ndarray:
    """(rows R, n) -> (rows 2 R, n): the same contents at the start of each row's share."""
    old = array.reshape(rows, -1, array.shape[-1])
    new = np.zeros((rows, 2 * old.shape[1], array.shape[-1]))
    new[:, : old.shape[1]] = old
    return new.reshape(-1, array.shape[-1])
