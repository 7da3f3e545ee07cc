"""The score of driven proposals: nuPlan's own metrics on the next four seconds of a forecast world."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from radp.geometry.line_kernels import line_project
from radp.metrics.collisions import ACTIVE_FRONT, ACTIVE_LATERAL, STOPPED_TRACK, find_collisions
from radp.metrics.drivable_area import drivable_series
from radp.metrics.drive import Drive, MapArrays
from radp.metrics.driving_direction import COMPLIANT, VIOLATED, direction_series
from radp.metrics.lanes import areas_at, corner_lanes, route_of
from radp.metrics.ttc import LEAST, ttc_series
from radp.metrics.ttc import STEP as TTC_STEP
from radp.planners.pdm.comfort import is_comfortable
from radp.planners.pdm.drive import outline
from radp.planners.pdm.proposals import Way
from radp.planners.pdm.settings import DT, SCORED, Weights
from radp.planners.route import STEP

TTC_STEPS = math.floor(LEAST / TTC_STEP)  # later contacts do not change the metric
WINDOW = round(1.0 / DT)  # samples of the driving direction's window
FURTHEST = 400  # samples of the line that a proposal may cover
COLLISION, DRIVABLE, DIRECTION, PROGRESS, TTC, COMFORT, HIT_TIME, TOTAL = range(8)  # columns of a score table


class Traffic(NamedTuple):
    """A forecast objects over S samples, in the fields of a metrics' Drive."""

    state: np.ndarray  # (A, S, 5)
    valid: np.ndarray  # (A, S) bool
    speed: np.ndarray  # (A, S)
    size: np.ndarray  # (A, 3)
    static: np.ndarray  # (A,) bool
    is_object: np.ndarray  # (A,) bool: neither a vehicle nor a person


@njit(cache=True, nogil=True)
def rate(
    states: np.ndarray,
    history: np.ndarray,
    filters: np.ndarray,
    traffic: Traffic,
    way: Way,
    start: float,
    road: MapArrays,
    row: np.ndarray,
) -> None:
    """Rate one driven proposal (41, 11) -> columns COLLISION..HIT_TIME of `row`; progress in metres, hit time in s.

    start: arc length of the rear axle now.
    """
    samples = states.shape[0]
    center, corners, speed = np.empty((samples, 2)), np.empty((samples, 4, 2)), np.empty(samples)
    outline(states, center, corners, speed)
    times = np.arange(samples) * 100_000
    driven = Drive(
        times, states, center, corners, speed, traffic.state, traffic.valid, traffic.speed, traffic.size, traffic.static
    )
    route = route_of(center, areas_at(center, road.lanes), road)
    has_lane, connected = corner_lanes(areas_at(corners.reshape(-1, 2), road.lanes), road)
    _, outside = drivable_series(corners, route, has_lane, road)
    row[DRIVABLE] = 1.0 if _stays_on_road(outside) else 0.0
    backwards = abs(direction_series(center, route, road, WINDOW).min())
    row[DIRECTION] = 1.0 if backwards < COMPLIANT else 0.5 if backwards < VIOLATED else 0.0
    first, kinds, _ = find_collisions(driven)
    at_fault = np.zeros(first.shape[0], np.bool_)
    row[COLLISION], row[HIT_TIME] = _collisions(first, kinds, connected, traffic.is_object, at_fault)
    crossing = areas_at(states[:, :2].copy(), road.intersections).size > 0
    ttc, _ = ttc_series(driven, connected, crossing, first, at_fault, TTC_STEPS)
    row[TTC] = 1.0 if ttc.min() > LEAST else 0.0
    row[COMFORT] = 1.0 if is_comfortable(history, states, filters) else 0.0
    end, _ = line_project(
        states[-1, 0], states[-1, 1], way.points, way.headings, STEP, int(max(0.0, start) / STEP), FURTHEST
    )
    row[PROGRESS] = max(0.0, end - start)


@njit(cache=True, nogil=True)
def _stays_on_road(outside: np.ndarray) -> bool:
    """No sample further off the road than the ego is now: who starts beside the road may come back to it."""
    worst = outside[0]
    for t in range(1, outside.shape[0]):
        if outside[t] > worst:
            return False
        worst = min(worst, outside[t])
    return True


@njit(cache=True, nogil=True)
def _collisions(
    first: np.ndarray, kinds: np.ndarray, connected: np.ndarray, is_object: np.ndarray, at_fault: np.ndarray
) -> tuple[float, float]:
    """Score of the collisions and time of the first one at fault [s]; fills at_fault (A,)."""
    score, hit = 1.0, np.inf
    for a in range(first.shape[0]):
        if first[a] < 0:
            continue
        sideways = kinds[a] == ACTIVE_LATERAL and not connected[first[a]]
        at_fault[a] = sideways or kinds[a] in (STOPPED_TRACK, ACTIVE_FRONT)
        if at_fault[a]:
            score = max(0.0, score - 0.5) if is_object[a] else 0.0
            hit = min(hit, first[a] * DT)
    return score, hit


@njit(cache=True, nogil=True)
def total_scores(table: np.ndarray, offsets: np.ndarray, weights: Weights) -> None:
    """Fill the column TOTAL of a table (N, 8) of proposals whose distances from the centre line are offsets (N,)."""
    gates = table[:, COLLISION] * table[:, DRIVABLE] * table[:, DIRECTION]
    furthest = (table[:, PROGRESS] * gates).max()
    total = weights.progress + weights.ttc + weights.comfort
    for n in range(table.shape[0]):
        progress = table[n, PROGRESS] / furthest if furthest > weights.least_progress else 1.0
        table[n, TOTAL] = (
            gates[n]
            * (
                weights.progress * min(1.0, progress)
                + weights.ttc * table[n, TTC]
                + weights.comfort * table[n, COMFORT]
            )
            / total
        )
        # Equals: the later hit, the further drive, the middle of the lane.
        table[n, TOTAL] += 1e-3 * min(table[n, HIT_TIME], SCORED * DT) + 1e-4 * table[n, PROGRESS]
        table[n, TOTAL] -= weights.center * abs(offsets[n])
