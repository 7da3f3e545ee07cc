"""What a source knows of a road; None where it does not know."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

LEAST_LENGTH = 0.2  # m; shorter lines are points


@dataclass
class LaneDraft:
    """A lane: centre (P, 2) in driving direction, world frame, metres."""

    id: str
    center: np.ndarray
    left: np.ndarray | None = None  # borders (P, 2)
    right: np.ndarray | None = None
    successors: tuple[str, ...] | None = None
    left_neighbor: str | None = None  # side by side from end to end, same direction
    right_neighbor: str | None = None
    connector: bool | None = None
    speed_limit: float | None = None  # m/s


@dataclass
class RoadDraft:
    """All a source knows of the surroundings of one log."""

    name: str
    lanes: list[LaneDraft] = field(default_factory=list)
    lines: list[np.ndarray] = field(default_factory=list)  # painted
    edges: list[np.ndarray] = field(default_factory=list)  # where the road ends
    drivable: list[np.ndarray] | None = None  # rings; None: to be rebuilt from the edges
    surfaces: list[np.ndarray] = field(default_factory=list)  # rings that are drivable beside the lanes: driveways
    crosswalks: list[np.ndarray] = field(default_factory=list)  # rings
    stops: dict[str, np.ndarray] = field(default_factory=dict)  # lane id -> (2,) where its light holds
    knows_neighbors: bool = False


def clean_line(points: ArrayLike) -> np.ndarray | None:
    """Points (P, 2 or more) -> (Q, 2) finite and without repetitions; None if no line is left of them."""
    line = np.asarray(points, dtype=np.float64)
    if line.ndim != 2 or line.shape[1] < 2:
        return None
    line = line[np.isfinite(line[:, :2]).all(axis=1), :2]
    if len(line) < 2:
        return None
    steps = np.hypot(*np.diff(line, axis=0).T)
    line = line[np.concatenate(([True], steps > 1e-3))]
    return line if len(line) > 1 and np.hypot(*np.diff(line, axis=0).T).sum() >= LEAST_LENGTH else None


def clean_ring(points: ArrayLike) -> np.ndarray | None:
    """Points of an area -> (Q >= 3, 2), finite; None if no area is left of them."""
    ring = clean_line(points)
    return ring if ring is not None and len(ring) >= 3 else None
