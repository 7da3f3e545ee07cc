"""The arrays of a batch of reactive worlds, in the layout that the compiled step reads and writes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

MAX_ROUTE = 5  # segments of a route that are remembered


class Fleet(NamedTuple):
    """B worlds, N = most agents of any world, in creation order. What the step changes.

    An agent's occupancy is the union of `box` and the strip of its sweep line, `ring`; both in `bounds`.
    """

    alive: np.ndarray  # (B, N) bool
    pose: np.ndarray  # (B, N, 3) x, y, heading of the box centre
    speed: np.ndarray  # (B, N) m/s
    target: np.ndarray  # (B, N) m/s wanted in free traffic
    progress: np.ndarray  # (B, N) m along the path
    size: np.ndarray  # (B, N, 2) length, width
    path: np.ndarray  # (B, N, P, 4) x, y, heading (continuous), progress
    path_count: np.ndarray  # (B, N)
    route: np.ndarray  # (B, N, 5) lanes, oldest first
    route_count: np.ndarray  # (B, N)
    box: np.ndarray  # (B, N, 4, 2) corners
    sweep: np.ndarray  # (B, N, S, 2) line from half a length behind the centre to 1.5 s ahead of the front
    sweep_count: np.ndarray  # (B, N), 0 before the first move
    ring: np.ndarray  # (B, N, R, 2)
    ring_count: np.ndarray  # (B, N)
    bounds: np.ndarray  # (B, N, 4)


class Stage(NamedTuple):
    """B worlds, O = most replayed objects, F = most frames: what the log gives. The step only reads it."""

    first_lane: np.ndarray  # (B,) index of the world's lane 0 in the roads
    last_frame: np.ndarray  # (B,)
    light_column: np.ndarray  # (B, L) column of a lane's light, -1 = none
    light_state: np.ndarray  # (B, F, C) uint8 LightState
    object_state: np.ndarray  # (B, F, O, 5)
    object_valid: np.ndarray  # (B, F, O) bool
    object_size: np.ndarray  # (B, O, 2) length, width


def empty_fleet(worlds: int, agents: int, path: int, sweep: int, ring: int) -> Fleet:
    """No agent alive; room for `path` vertices, `sweep` points of a sweep line and `ring` points around it."""
    shape = (worlds, agents)
    return Fleet(
        alive=np.zeros(shape, dtype=bool),
        pose=np.zeros((*shape, 3)),
        speed=np.zeros(shape),
        target=np.zeros(shape),
        progress=np.zeros(shape),
        size=np.zeros((*shape, 2)),
        path=np.zeros((*shape, path, 4)),
        path_count=np.zeros(shape, dtype=np.int64),
        route=np.zeros((*shape, MAX_ROUTE), dtype=np.int64),
        route_count=np.zeros(shape, dtype=np.int64),
        box=np.zeros((*shape, 4, 2)),
        sweep=np.zeros((*shape, sweep, 2)),
        sweep_count=np.zeros(shape, dtype=np.int64),
        ring=np.zeros((*shape, ring, 2)),
        ring_count=np.zeros(shape, dtype=np.int64),
        bounds=np.zeros((*shape, 4)),
    )


def grown_fleet(fleet: Fleet) -> Fleet:
    """The same agents with twice the room for paths, sweep lines and rings."""
    wider = {}
    for name in ("path", "sweep", "ring"):
        old = getattr(fleet, name)
        new = np.zeros((*old.shape[:2], 2 * old.shape[2], old.shape[3]))
        new[:, :, : old.shape[2]] = old
        wider[name] = new
    return fleet._replace(**wider)
