"""The score of driven proposals: nuPlan's own metrics on the next four seconds of a forecast world."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from radp.geometry.line_kernels import line_refine
from radp.metrics.collisions import ACTIVE_FRONT, ACTIVE_LATERAL, STOPPED_TRACK, find_collisions
from radp.metrics.drive import Drive
from radp.metrics.driving_direction import COMPLIANT, VIOLATED
from radp.metrics.ttc import LEAST, TTC_STEP, ttc_series
from radp.planners.corridor import CENTER, FRONT, HEADING, X, Y
from radp.planners.pdm.comfort import is_comfortable
from radp.planners.pdm.drive import outline
from radp.planners.pdm.proposals import Way
from radp.planners.pdm.settings import SCORED, Weights
from radp.road.guide import GUIDE_SPACING
from radp.road.margins import LEFT, OWN, RIGHT, ROAD, SAME_WAY
from radp.scenario import DT

TTC_STEPS = math.floor(LEAST / TTC_STEP)  # later contacts do not change the metric
TOLERANCE = 0.15  # m off the road, half of what the metric forgives
WINDOW = round(1.0 / DT)  # samples of the driving direction's window
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
    row: np.ndarray,
) -> None:
    """Rate one driven proposal (41, 11) -> columns COLLISION..HIT_TIME of `row`; progress in metres, hit time in s.

    start: arc length of the rear axle now.
    """
    samples = states.shape[0]
    center, corners, speed = np.empty((samples, 2)), np.empty((samples, 4, 2)), np.empty(samples)
    outline(states, center, corners, speed)
    connected, crossing = np.empty(samples, np.bool_), np.empty(samples, np.bool_)
    outside, against = np.empty(samples), np.zeros(samples)
    end = follow_verge(states, corners, speed, way, start, connected, crossing, outside, against)
    row[PROGRESS] = max(0.0, end - start)
    row[DRIVABLE] = 1.0 if _stays_on_road(outside) else 0.0
    backwards = _worst_second(against)
    row[DIRECTION] = 1.0 if backwards < COMPLIANT else 0.5 if backwards < VIOLATED else 0.0
    driven = Drive(
        np.arange(samples) * 100_000, states, center, corners, speed,
        traffic.state, traffic.valid, traffic.speed, traffic.size, traffic.static,
    )  # fmt: skip
    first, kinds, _ = find_collisions(driven)
    at_fault = np.zeros(first.shape[0], np.bool_)
    row[COLLISION], row[HIT_TIME] = _collisions(first, kinds, connected, traffic.is_object, at_fault)
    ttc, _ = ttc_series(driven, connected, crossing, first, at_fault, TTC_STEPS)
    row[TTC] = 1.0 if ttc.min() > LEAST else 0.0
    row[COMFORT] = 1.0 if is_comfortable(history, states, filters) else 0.0


@njit(cache=True, nogil=True)
def follow_verge(
    states: np.ndarray,
    corners: np.ndarray,
    speed: np.ndarray,
    way: Way,
    start: float,
    connected: np.ndarray,
    crossing: np.ndarray,
    outside: np.ndarray,
    against: np.ndarray,
) -> float:
    """Per sample: all corners within the line's lanes; rear axle in an intersection; metres that the worst corner is
    off the road; metres driven on ground of an oncoming lane. Returns the last arc length of the rear axle."""
    s, last = start, way.points.shape[0] - 1
    own, road, same_way = way.margins[OWN], way.margins[ROAD], way.margins[SAME_WAY]
    for t in range(states.shape[0]):
        s, lateral, heading = line_refine(states[t, X], states[t, Y], s, way.points, way.headings, GUIDE_SPACING)
        place = min(max(int(s / GUIDE_SPACING), 0), last)
        crossing[t] = way.crossing[place]
        side = lateral + CENTER * math.sin(states[t, HEADING] - heading)
        reach = same_way[LEFT, place] if side > 0.0 else same_way[RIGHT, place]
        against[t] = speed[t] * DT if abs(side) > reach else 0.0
        connected[t], outside[t] = True, 0.0
        for c in range(4):
            guess = s + (FRONT if c == 0 or c == 3 else 0.0)
            at, offset, _ = line_refine(
                corners[t, c, 0], corners[t, c, 1], guess, way.points, way.headings, GUIDE_SPACING
            )
            place = min(max(int(at / GUIDE_SPACING), 0), last)
            border = LEFT if offset > 0.0 else RIGHT
            connected[t] = connected[t] and abs(offset) <= own[border, place]
            beyond = max(abs(offset) - road[border, place], at - last * GUIDE_SPACING)
            if beyond > TOLERANCE:
                outside[t] = max(outside[t], beyond)
    return s


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
def _worst_second(moved: np.ndarray) -> float:
    """Largest sum over WINDOW + 1 neighbouring samples."""
    worst = total = 0.0
    for t in range(moved.shape[0]):
        total += moved[t]
        if t > WINDOW:
            total -= moved[t - WINDOW - 1]
        worst = max(worst, total)
    return worst


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
