"""Whom an agent follows: the nearest object that reaches into the corridor ahead of it."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from radp.geometry.compiled import kernel
from radp.geometry.kernels import wrap_angle
from radp.geometry.regions import bounds_gap, ring_bounds, ring_distance
from radp.geometry.strips import line_segments, strip_meets_ring
from radp.sim.agents.idm_fleet import BOX, SWEEP, Claims

MIN_GAP = 1.0  # m
HEADWAY = 1.5  # s
MAX_ACCEL = 1.0  # m/s2
MAX_DECEL = 2.0  # m/s2
TIE = 1e-9  # m, m/s2: smaller differences are none
NOBODY, TIED = -1, -2


class Scratch(NamedTuple):
    """Working memory of one thread, for paths of P vertices, rings of R points and S slots."""

    line: np.ndarray  # (P + 1, 2)
    segment: np.ndarray  # (P + 1, 9)
    joint: np.ndarray  # (70, 2)
    ring: np.ndarray  # (R, 2)
    row: np.ndarray  # (S,)
    low: np.ndarray  # (S,)
    near_row: np.ndarray  # (S,)
    near_gap: np.ndarray  # (S,)
    corridor: np.ndarray  # (1, 4)


@kernel
def acceleration(speed: float, target: float, gap: float, ahead: float) -> float:
    """The Intelligent Driver Model [m/s2] behind a lead of speed `ahead`, within the limits of the model.

    a (1 - (v / v0)^4 - (s* / s)^2) with s* = 1 m + v 1.5 s + v (v - ahead) / (2 sqrt(a b)) and s = max(gap, 1 m).
    """
    wish = MIN_GAP + speed * HEADWAY + speed * (speed - ahead) / (2.0 * math.sqrt(MAX_ACCEL * MAX_DECEL))
    ratio, closeness = speed / target, wish / max(gap, MIN_GAP)
    accel = MAX_ACCEL * (1.0 - ratio * ratio * ratio * ratio - closeness * closeness)
    return min(max(-MAX_DECEL, accel), MAX_ACCEL)


@kernel
def speed_along(row: int, own: int, claims: Claims) -> float:
    """Speed of the object in a row along the heading of the one in row `own` [m/s]."""
    return claims.speed[row] * math.cos(wrap_angle(claims.heading[row] - claims.heading[own]))


@kernel
def _candidates(
    own: int, first: int, last: int, present: np.ndarray, bounds: np.ndarray, corridor: np.ndarray, row: np.ndarray,
    low: np.ndarray,
) -> int:  # fmt: skip
    """Rows whose bounds meet the corridor's, each with a lower bound of its distance; returns their number."""
    count = 0
    for q in range(first, last):
        if present[q] and q != own and bounds_gap(corridor, 0, bounds, q) == 0.0:
            row[count], low[count] = q, bounds_gap(bounds, own, bounds, q)
            count += 1
    return count


@kernel
def _reaches_in(
    q: int, room: int, size: np.ndarray, point: np.ndarray, segment: np.ndarray, segments: int, half: float,
    joint: np.ndarray,
) -> bool:  # fmt: skip
    """Whether claim q shares a point with the corridor, segment[:segments] widened by `half`."""
    for piece in (BOX, SWEEP):
        first = (2 * q + piece) * room
        if size[q, piece] > 0 and strip_meets_ring(
            segment, segments, half, point, first, first + size[q, piece], joint
        ):
            return True
    return False


@kernel
def _claim_distance(p: int, q: int, room: int, size: np.ndarray, point: np.ndarray, limit: float) -> float:
    """Distance between the claims p and q, at most `limit`."""
    for own in (BOX, SWEEP):
        for other in (BOX, SWEEP):
            a, b = (2 * p + own) * room, (2 * q + other) * room
            limit = ring_distance(point, a, a + size[p, own], point, b, b + size[q, other], limit)
    return limit


@kernel
def find_lead(
    own: int, first: int, last: int, half: float, line_count: int, claims: Claims, work: Scratch, target: float,
    forced: int,
) -> tuple[int, float]:  # fmt: skip
    """Row and distance of the lead, among rows first..last-1, of the agent in row `own`; NOBODY when its way is free.

    Its way is work.line[:line_count], `half` wide to both sides. Among objects at the same smallest distance the choice
    is TIED when it makes a difference and none is `forced`.
    """
    room = len(claims.point) // (2 * len(claims.present))
    segments = line_segments(work.line, line_count, half, work.segment)
    low_x, low_y, high_x, high_y = ring_bounds(work.line, 0, line_count)
    work.corridor[0, 0], work.corridor[0, 1] = low_x - half, low_y - half
    work.corridor[0, 2], work.corridor[0, 3] = high_x + half, high_y + half
    row, low = work.row, work.low
    count = _candidates(own, first, last, claims.present, claims.bounds, work.corridor, row, low)
    best, near = np.inf, 0
    while True:
        pick = -1
        for i in range(count):
            if row[i] >= 0 and low[i] <= best + TIE and (pick < 0 or low[i] < low[pick]):
                pick = i
        if pick < 0:
            break
        q = row[pick]
        row[pick] = -1
        if _reaches_in(q, room, claims.piece_size, claims.point, work.segment, segments, half, work.joint):
            gap = _claim_distance(own, q, room, claims.piece_size, claims.point, best + 2.0 * TIE)
            if gap <= best + TIE:
                best = min(best, gap)
                work.near_row[near], work.near_gap[near] = q, gap
                near += 1
    return _choose(own, best, near, claims, work.near_row, work.near_gap, target, forced)


@kernel
def _choose(
    own: int, best: float, near: int, claims: Claims, near_row: np.ndarray, near_gap: np.ndarray, target: float,
    forced: int,
) -> tuple[int, float]:  # fmt: skip
    """The lead among near_row[:near]: those within TIE of the best distance are equal; the first unless it matters."""
    chosen, accel = NOBODY, 0.0
    for i in range(near):
        if near_gap[i] > best + TIE:
            continue
        if near_row[i] == forced:
            return forced, near_gap[i]
        value = acceleration(claims.speed[own], target, near_gap[i], speed_along(near_row[i], own, claims))
        if forced < 0 and chosen >= 0 and abs(value - accel) > TIE:
            return TIED, best
        if chosen < 0 or near_row[i] < chosen:
            chosen, accel = near_row[i], value
    return chosen, best
