"""What a source knows of a road; None where it does not know."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from radp.sources.limits import MOST_COORDINATE, MOST_LANE_LENGTH, MOST_LANES, MOST_LINE_POINTS, MOST_ROAD_LENGTH

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
    length: float = 0.0  # m of all lanes

    def add(self, lane: LaneDraft) -> None:
        """Add a lane; ValueError where there are more, or longer ones, than in the surroundings of a log."""
        self.length += lane_length(lane.center)
        self.lanes.append(lane)
        if len(self.lanes) > MOST_LANES or self.length > MOST_ROAD_LENGTH:
            count = f"{len(self.lanes)} lanes and more of {self.length:g} m"
            raise ValueError(f"the map has {count}, expected at most {MOST_LANES} of {MOST_ROAD_LENGTH:g} m")


def lane_length(*lines: np.ndarray) -> float:
    """m of the longest of some lines (P, 2) along a lane; ValueError for more than a lane has."""
    length = max(float(np.hypot(*np.diff(line, axis=0).T).sum()) for line in lines)
    if length > MOST_LANE_LENGTH:
        raise ValueError(f"a lane is {length:g} m long, expected at most {MOST_LANE_LENGTH:g}")
    return length


def clean_line(points: ArrayLike) -> np.ndarray | None:
    """Points (P, 2 or more) -> (Q, 2) finite and without repetitions; None if no line is left of them.

    ValueError for a point beyond this planet.
    """
    line = np.asarray(points, dtype=np.float64)
    if line.ndim != 2 or line.shape[1] < 2:
        return None
    if len(line) > MOST_LINE_POINTS:
        raise ValueError(f"a line has {len(line)} points, expected at most {MOST_LINE_POINTS}")
    line = line[np.isfinite(line[:, :2]).all(axis=1), :2]
    farthest = np.abs(line).max(initial=0.0)
    if farthest > MOST_COORDINATE:
        raise ValueError(f"a line has a point at {farthest:g} m, expected at most {MOST_COORDINATE:g}")
    if len(line) < 2:
        return None
    steps = np.hypot(*np.diff(line, axis=0).T)
    line = line[np.concatenate(([True], steps > 1e-3))]
    return line if len(line) > 1 and np.hypot(*np.diff(line, axis=0).T).sum() >= LEAST_LENGTH else None


def clean_ring(points: ArrayLike) -> np.ndarray | None:
    """Points of an area -> (Q >= 3, 2), finite; None if no area is left of them."""
    ring = clean_line(points)
    return ring if ring is not None and len(ring) >= 3 else None
