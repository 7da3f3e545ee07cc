"""What a safety engineer would look at: one number a moment, from present states alone, larger = more critical.

Every object is looked at as it stands: it and the ego go straight on at their speed. `MovingPairs` holds, for A objects
and S samples, what all measures need; the ego's path is the strip of its width along its heading, and its leader in it
is any object whose box reaches into the strip ahead. A measure takes the worst over objects. Times are cut at 8 s.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from radp.metrics.drive import BOX_VX, BOX_VY, EGO_VX, HEADING, LENGTH, WIDTH, Drive
from radp.scenario import DT

HORIZON = 8.0  # s
MAX_BRAKING = 8.0  # m/s2, the ego's bound in the rules' table too
LEAST_GAP = 0.1  # m
MOVING = 0.5  # m/s
CROSSING = np.sin(np.radians(20.0))  # paths that meet at a smaller angle do not cross
MARGIN_SECONDS = 0.5  # over which the drift towards a line is measured
RESPONSE, RSS_SPEEDING, RSS_BRAKING, RSS_LEADER = 0.5, 3.0, 4.0, 8.0  # s, m/s2: RSS's rho, a_max, b_min, b_max
UNLIMITED = 30.0  # m/s below the limit where none is known


@dataclass(frozen=True)
class MovingPairs:
    """(A, S) each, in the frame of the ego's box at that sample; NaN where the object is not there."""

    ahead: np.ndarray  # m from centre to centre along the heading
    aside: np.ndarray  # m, left positive
    along: np.ndarray  # half extent of the object along the ego's heading [m]
    across: np.ndarray  # and across it
    velocity: np.ndarray  # of the object along the heading [m/s]
    sideways: np.ndarray  # across it, left positive
    acceleration: np.ndarray  # along it, from the sample before [m/s2]
    speed: np.ndarray  # of the ego [m/s], (S,)
    size: np.ndarray  # (A, 2) length and width

    @property
    def gap(self) -> np.ndarray:
        """Between the ego's front and the object's rear; below 0 beside or behind."""
        return self.ahead - self.along - LENGTH / 2

    @property
    def leads(self) -> np.ndarray:
        """Whether the object is in the ego's path, its rear not behind the ego's centre."""
        return (np.abs(self.aside) < self.across + WIDTH / 2) & (self.ahead - self.along > 0)

    @property
    def closing(self) -> np.ndarray:
        return self.speed - self.velocity


def pairs_of(drive: Drive) -> MovingPairs:
    """All objects of a drive against the ego."""
    heading = drive.ego[:, HEADING]
    c, s = np.cos(heading), np.sin(heading)
    offset = drive.agent_state[..., :2] - drive.center
    turn = drive.agent_state[..., HEADING] - heading
    vx, vy = (np.where(drive.agent_static[:, None], 0.0, drive.agent_state[..., k]) for k in (BOX_VX, BOX_VY))
    length, width = drive.agent_size[:, :1], drive.agent_size[:, 1:2]
    velocity = c * vx + s * vy
    speeds = np.where(drive.agent_valid, drive.agent_speed, np.nan)
    change = np.diff(speeds, axis=1, prepend=np.nan) / DT * np.sign(velocity)
    there = np.where(drive.agent_valid, 1.0, np.nan)
    return MovingPairs(
        ahead=there * (c * offset[..., 0] + s * offset[..., 1]),
        aside=there * (c * offset[..., 1] - s * offset[..., 0]),
        along=(np.abs(np.cos(turn)) * length + np.abs(np.sin(turn)) * width) / 2,
        across=(np.abs(np.sin(turn)) * length + np.abs(np.cos(turn)) * width) / 2,
        velocity=velocity,
        sideways=c * vy - s * vx,
        acceleration=np.nan_to_num(change),
        speed=drive.ego[:, EGO_VX],
        size=drive.agent_size[:, :2],
    )


def worst(values: np.ndarray, counts: np.ndarray, nothing: float) -> np.ndarray:
    """(A, S) -> (S,): the largest among those that count, `nothing` where none does."""
    return np.where(counts & ~np.isnan(values), values, -np.inf).max(0, initial=nothing)


def time_to_brake(pairs: MovingPairs) -> np.ndarray:
    """-TTB [s], TTB = gap / c - c / (2 b): until full braking comes too late (Hillenbrand et al. 2006)."""
    closing = np.maximum(pairs.closing, 1e-6)
    left = np.maximum(pairs.gap, 0.0) / closing - closing / (2 * MAX_BRAKING)
    return np.maximum(worst(-left, pairs.leads & (pairs.closing > 0), -HORIZON), -HORIZON)


def required_deceleration(pairs: MovingPairs) -> np.ndarray:
    """DRAC = c^2 / (2 gap) [m/s2] to reach the leader's speed in time (Cooper and Ferguson 1976)."""
    needed = pairs.closing**2 / (2 * np.maximum(pairs.gap, LEAST_GAP))
    return worst(needed, pairs.leads & (pairs.closing > 0), 0.0)


def brake_threat_number(pairs: MovingPairs) -> np.ndarray:
    """BTN = required braking / possible braking, the leader keeping its acceleration a (Brannstrom et al. 2008).

    Required are -a + c^2 / (2 gap), or v^2 / (2 (gap + v_lead^2 / (2 |a|))) where the leader stops before 2 gap / c,
    when the speeds would be equal.
    """
    gap, lead, accel = np.maximum(pairs.gap, LEAST_GAP), np.maximum(pairs.velocity, 0.0), pairs.acceleration
    closing, braking = np.maximum(pairs.closing, 0.0), np.maximum(-accel, 1e-6)
    keeps = closing**2 / (2 * gap) - accel
    stops = pairs.speed**2 / (2 * (gap + lead**2 / (2 * braking)))
    needed = np.where((accel < 0) & (lead * closing < 2 * gap * braking), stops, keeps)
    return worst(np.maximum(needed, 0.0) / MAX_BRAKING, pairs.leads & (gap < pairs.speed * HORIZON), 0.0)


def time_headway(pairs: MovingPairs) -> np.ndarray:
    """1 / THW = v / gap [1/s] to the leader (Michael et al. 2000)."""
    return worst(pairs.speed / np.maximum(pairs.gap, LEAST_GAP), pairs.leads, 0.0)


def encroachment(pairs: MovingPairs) -> np.ndarray:
    """-PET [s]: time between one leaving the place where straight paths cross and the other coming there.

    Post-encroachment time (Allen et al. 1978), foretold as the time advantage (Laureshyn et al. 2010). The place is as
    long as the other path is wide, over the sine of the angle; it must lie ahead of both.
    """
    speed = np.hypot(pairs.velocity, pairs.sideways)
    sine = np.abs(pairs.sideways) / np.maximum(speed, MOVING)
    crosses = (speed > MOVING) & (pairs.speed > MOVING) & (sine > CROSSING)
    side = np.where(crosses, pairs.sideways, 1.0)
    theirs = -pairs.aside / side * speed  # m that the object has to the ego's line
    mine = pairs.ahead - pairs.aside / side * pairs.velocity  # m that the ego has to the object's line
    sine = np.where(crosses, sine, 1.0)
    length, width = pairs.size[:, :1], pairs.size[:, 1:]

    def stay(distance: np.ndarray, body: np.ndarray, lane: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        half, v = (body + lane / sine) / 2, np.maximum(v, MOVING)
        return (distance - half) / v, (distance + half) / v

    own_in, own_out = stay(mine, np.full_like(length, LENGTH), width, pairs.speed)
    their_in, their_out = stay(theirs, length, np.full_like(width, WIDTH), speed)
    gap = np.maximum(np.maximum(own_in - their_out, their_in - own_out), 0.0)
    meets = crosses & (own_out > 0) & (their_out > 0) & (np.minimum(own_in, their_in) < HORIZON)
    return np.maximum(worst(-gap, meets, -HORIZON), -HORIZON)


def least_distance(pairs: MovingPairs) -> np.ndarray:
    """-distance [m] at the closest of the next 8 s: gap of the boxes on the ego's two axes, every 0.25 s."""
    best = np.full(len(pairs.speed), -np.inf)
    for t in np.arange(0.0, HORIZON + 0.01, 0.25):
        along = np.abs(pairs.ahead - t * pairs.closing) - pairs.along - LENGTH / 2
        aside = np.abs(pairs.aside + t * pairs.sideways) - pairs.across - WIDTH / 2
        apart = np.hypot(np.maximum(along, 0.0), np.maximum(aside, 0.0))
        best = np.maximum(best, worst(-apart, ~np.isnan(apart), -100.0))
    return best


def rss_deficit(pairs: MovingPairs) -> np.ndarray:
    """Metres missing to RSS's safe distance behind the leader (Shalev-Shwartz et al. 2017, definition 1).

    d = v r + a r^2 / 2 + (v + r a)^2 / (2 b_min) - v_lead^2 / (2 b_max)
    """
    faster = pairs.speed + RESPONSE * RSS_SPEEDING
    ours = pairs.speed * RESPONSE + RSS_SPEEDING * RESPONSE**2 / 2 + faster**2 / (2 * RSS_BRAKING)
    wanted = np.maximum(ours - np.maximum(pairs.velocity, 0.0) ** 2 / (2 * RSS_LEADER), 0.0)
    return worst(np.maximum(wanted - pairs.gap, 0.0), pairs.leads, 0.0)


def time_to_line(margin: np.ndarray) -> np.ndarray:
    """-TLC [s], TLC = margin / drift towards the border: margin (S,) m, drift from the half second before.

    Time to line crossing (Godthelp et al. 1984); 0 s outside.
    """
    lag = round(MARGIN_SECONDS / DT)
    before = margin[np.maximum(np.arange(len(margin)) - lag, 0)]
    drift = np.maximum(before - margin, 0.0) / MARGIN_SECONDS
    left = np.divide(margin, drift, out=np.full(len(margin), HORIZON), where=drift > 1e-3)
    return -np.clip(np.where(margin <= 0, 0.0, left), 0.0, HORIZON)


def speed_excess(speed: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """Speed minus limit [m/s], both (S,); a limit of 0 is not known."""
    return np.where(limit > 0, speed - limit, -UNLIMITED)
