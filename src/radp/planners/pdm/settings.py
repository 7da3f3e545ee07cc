"""Numbers of PDM-Closed, as published unless a comment says otherwise."""

from __future__ import annotations

from typing import NamedTuple

HORIZON = 80  # steps of a proposal: 8 s
SCORED = 40  # steps that are driven and scored: 4 s


class Driver(NamedTuple):
    """The IDM that unrolls proposals."""

    fallback_speed: float = 15.0  # m/s where there is no limit
    min_gap: float = 1.0  # m
    headway: float = 1.5  # s
    accel: float = 1.5  # m/s2
    decel: float = 3.0  # m/s2
    exponent: float = 10.0


class Weights(NamedTuple):
    """The weighted part of a proposal's score, and what decides between equals (not published)."""

    progress: float = 5.0
    ttc: float = 5.0
    comfort: float = 2.0
    center: float = 0.05  # taken off for each metre beside the centre line
    least_progress: float = 5.0  # m; where no proposal gets further, progress does not count


class Brake(NamedTuple):
    """The emergency brake."""

    within: float = 2.0  # s to an at-fault collision of the best proposal
    lag: float = 1.2  # s beyond the time to stop: the faster, the earlier it brakes (not published)
    decel: float = 4.0  # m/s2, just inside the comfort bound of 4.05
    harder: float = 2.5  # m/s2 more at a time, twice at most, where that avoids the collision (not published)


class Room(NamedTuple):
    """What counts as touched beyond the boxes themselves (not published)."""

    ahead: float = 0.3  # m before and behind everybody: the controller creeps to a stop
    people: float = 0.0  # m on all sides of people on foot and on bicycles


FRACTIONS = (0.2, 0.4, 0.6, 0.8, 1.0)  # of the allowed speed
OFFSETS = (-1.0, 0.0, 1.0)  # m to the left of the centre line
DRIVER, WEIGHTS, BRAKE, ROOM = Driver(), Weights(), Brake(), Room()
