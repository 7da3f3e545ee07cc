"""Traffic for made scenarios: vehicles that follow their ways, their leaders and their lights by IDM."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radp.road.road_map import RoadMap
from radp.scenario import DT, LightState

MIN_GAP, HEADWAY, ACCEL, BRAKE, HARDEST_BRAKE = 2.0, 1.4, 1.2, 2.0, 3.0
CURVE_BRAKE = 1.2  # m/s2, ahead of strips with a lower limit
SIBLING_LENGTH = 12.0  # connectors that leave the same lane cover each other this far


@dataclass(frozen=True)
class Chain:
    """A way of K strips through the map: lanes (K,), first (K,) arc length of each, points (P, 2) and arc (P,)."""

    lanes: np.ndarray
    first: np.ndarray
    points: np.ndarray
    arc: np.ndarray

    @property
    def length(self) -> float:
        return float(self.arc[-1])

    @property
    def headings(self) -> np.ndarray:
        """(P,) unwrapped direction at the points."""
        return np.unwrap(np.arctan2(*np.gradient(self.points, self.arc, axis=0).T[::-1]))

    def pose(self, s: float) -> np.ndarray:
        """(3,) x, y, heading at an arc length."""
        return chain_poses(self, np.array([s]))[0]


@dataclass(frozen=True)
class MadeTraffic:
    """V vehicles, the ego first: their ways, first progress (V,), first speed (V,), size (V, 3)."""

    chains: list[Chain]
    progress: np.ndarray
    speed: np.ndarray
    size: np.ndarray


def make_chain(road: RoadMap, lanes: list[int]) -> Chain:
    rows = [road.centerlines[lane] if i == 0 else road.centerlines[lane][1:] for i, lane in enumerate(lanes)]
    points = np.concatenate(rows)
    arc = np.concatenate(([0.0], np.cumsum(np.hypot(*np.diff(points, axis=0).T))))
    ends = np.cumsum([len(row) for row in rows])[:-1] - 1
    return Chain(np.array(lanes), np.concatenate(([0.0], arc[ends])), points, arc)


def chain_poses(chain: Chain, s: np.ndarray) -> np.ndarray:
    """(S,) arc lengths -> (S, 3) poses."""
    columns = (chain.points[:, 0], chain.points[:, 1], chain.headings)
    return np.stack([np.interp(s, chain.arc, column) for column in columns], 1)


def light_lanes(road: RoadMap) -> np.ndarray:
    """(C,) connectors with traffic lights."""
    return np.flatnonzero(np.diff(road.lane_stop_lines.offsets) > 0)


@dataclass(frozen=True)
class Ways:
    """The ways of V vehicles as tables, K = most strips of a way, L = strips of the map."""

    lanes: np.ndarray  # (V, K) strips, -1 after the end
    first: np.ndarray  # (V, K) arc length at which each begins, infinite after the end
    offset: np.ndarray  # (V, L) arc length at which the way enters a strip; infinite where it does not
    sibling: np.ndarray  # (V, L) ... or a strip that leaves the same lane as one of the way
    light: np.ndarray  # (V, K) column of the strip's light, -1 for none
    allowed: np.ndarray  # (V, metres) speed from which slower strips ahead are reached gently
    end: np.ndarray  # (V,) length of the way


def _ways(road: RoadMap, chains: list[Chain]) -> Ways:
    count, most = len(chains), max(len(chain.lanes) for chain in chains)
    lanes, first = np.full((count, most), -1), np.full((count, most), np.inf)
    offset, sibling = np.full((2, count, len(road)), np.inf)
    allowed = np.zeros((count, int(max(chain.length for chain in chains)) + 2))
    for i, chain in enumerate(chains):
        first[i, : len(chain.lanes)], lanes[i, : len(chain.lanes)] = chain.first, chain.lanes
        offset[i, chain.lanes] = chain.first
        for before, start in zip(chain.lanes[:-1], chain.first[1:]):
            sibling[i, road.successors[before]] = start
        speeds = _allowed_speed(road, chain)
        allowed[i] = np.concatenate((speeds, np.full(allowed.shape[1] - len(speeds), speeds[-1])))
    light_of = np.full(len(road) + 1, -1)  # the last entry serves lane -1
    light_of[light_lanes(road)] = np.arange(len(light_lanes(road)))
    return Ways(lanes, first, offset, sibling, light_of[lanes], allowed, np.array([c.length for c in chains]))


def _allowed_speed(road: RoadMap, chain: Chain) -> np.ndarray:
    """(ceil(length) + 1,) speed at each metre of a way."""
    metres = np.arange(int(np.ceil(chain.length)) + 1)
    limit = road.speed_limit[chain.lanes[np.searchsorted(chain.first, metres, "right") - 1]].copy()
    for m in range(len(limit) - 2, -1, -1):
        limit[m] = min(limit[m], np.sqrt(limit[m + 1] ** 2 + 2 * CURVE_BRAKE))
    return limit


def drive_traffic(
    road: RoadMap, traffic: MadeTraffic, lights: np.ndarray, frames: int
) -> tuple[np.ndarray, np.ndarray]:
    """lights (T, C) LightState -> progress and speed (V, T) of all vehicles."""
    ways, half = _ways(road, traffic.chains), traffic.size[:, 0] / 2
    rows, s, v = np.arange(len(half)), traffic.progress.copy(), traffic.speed.copy()
    progress, speed = np.zeros((2, len(half), frames))
    for t in range(frames):
        progress[:, t], speed[:, t] = s, v
        k = (s[:, None] >= ways.first).sum(1) - 1
        gap, lead_speed = _vehicle_ahead(ways, k, s, v, half)
        stop = _stop_ahead(ways, k, s, v, half, lights[t])
        lead_speed, gap = np.where(stop < gap, 0.0, lead_speed), np.minimum(gap, stop)
        wish = MIN_GAP + np.maximum(0.0, v * HEADWAY + v * (v - lead_speed) / (2 * np.sqrt(ACCEL * BRAKE)))
        target = ways.allowed[rows, np.minimum(s, ways.allowed.shape[1] - 1.0).astype(int)]
        accel = ACCEL * (1 - (v / target) ** 4 - (wish / np.maximum(gap, 0.5)) ** 2)
        accel = np.clip(accel, np.maximum(-HARDEST_BRAKE, -v / DT), ACCEL)
        s, v = s + v * DT + accel * DT**2 / 2, np.maximum(0.0, v + accel * DT)
    return progress, speed


def _vehicle_ahead(
    ways: Ways, k: np.ndarray, s: np.ndarray, v: np.ndarray, half: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Gap to the next vehicle on the way of each (infinite for none) and its speed; k (V,): strip of each vehicle."""
    rows = np.arange(len(s))
    here, within = ways.lanes[rows, k], s - ways.first[rows, k]
    ahead = ways.offset[:, here] + within - s[:, None]
    covered = np.where(within < SIBLING_LENGTH, ways.sibling[:, here] + within - s[:, None], np.inf)
    ahead = np.where(np.isfinite(ahead), ahead, covered)
    ahead[(ahead <= 0.0) | (s >= ways.end)[None, :]] = np.inf
    np.fill_diagonal(ahead, np.inf)
    lead = ahead.argmin(1)
    return ahead[rows, lead] - half - half[lead], v[lead]


def _stop_ahead(
    ways: Ways, k: np.ndarray, s: np.ndarray, v: np.ndarray, half: np.ndarray, lights: np.ndarray
) -> np.ndarray:
    """Distance to a light that is not green and can still be stopped for; infinite for none."""
    rows, after = np.arange(len(s)), np.minimum(k + 1, ways.lanes.shape[1] - 1)
    light = ways.light[rows, after]
    stop = ways.first[rows, after] - s - half - 1.0
    closed = (light >= 0) & (lights[light] != LightState.GREEN) & (stop > v * v / (2 * HARDEST_BRAKE))
    return np.where(closed, stop, np.inf)
