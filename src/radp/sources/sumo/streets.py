"""Two-way streets between nodes and the lane connections where they meet, in plain XML."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from radp.sources.sumo.plain import PlainNet

STRAIGHT = np.radians(45)  # turns by less than this go straight on


@dataclass(frozen=True)
class Arm:
    """One street as a junction sees it: the edge that arrives, the edge that leaves, where it lies [rad]."""

    arriving: str
    leaving: str
    angle: float


def two_way(
    net: PlainNet,
    a: str,
    b: str,
    lanes: int,
    speed: float,
    middle: str = "",
    **options: Any,
) -> tuple[Arm, Arm]:
    """A straight street between two nodes; the arms that nodes a and b see.

    middle: '' for a plain street, 'kerb' for a stretch with kerb lanes on both sides, 'jay' for an unmarked crossing.
    """
    start, end = net.place(a), net.place(b)
    breaks = {"": (), "kerb": (0.35, 0.65), "jay": (0.55,)}[middle]
    names = [a, *(f"{'jay' if middle == 'jay' else 'mid'}-{a}-{b}-{i}" for i in range(len(breaks))), b]
    for name, share in zip(names[1:-1], breaks):
        net.node(name, start + share * (end - start))

    def piece(x: str, y: str, i: int) -> str:
        return f"{x}-{y}.{i}" if breaks else f"{x}-{y}"

    for one, other, order in ((a, b, names), (b, a, names[::-1])):
        edges = [piece(one, other, i) for i in range(len(order) - 1)]
        for i, edge in enumerate(edges):
            kerb = middle == "kerb" and i == 1
            net.edge(edge, order[i], order[i + 1], lanes, speed, kerb=kerb, **options)
        for first, second in pairwise(edges):
            net.connect(first, second, [(i, i) for i in range(lanes)])
    last = len(breaks)

    if middle == "jay":
        net.crossing(names[1], [piece(a, b, 1), piece(b, a, 0)], priority=False)
    angle = float(np.arctan2(*(end - start)[::-1]))
    return (
        Arm(piece(b, a, last), piece(a, b, 0), angle),
        Arm(piece(a, b, last), piece(b, a, 0), angle + np.pi),
    )


def join(net: PlainNet, arms: Sequence[Arm], left_lane: bool = True) -> None:
    """Connect all arms of a junction lane by lane.

    The right-most lane turns right and goes straight on, the left-most turns left (only that, if `left_lane` and it
    is not the only lane), all others go straight on. Nobody turns round.
    """
    for arm in arms:
        count = net.driving_lanes(arm.arriving)
        turns = {other.leaving: _turn(arm, other) for other in arms if other is not arm}
        onward = any(abs(turn) < STRAIGHT for turn in turns.values())
        for edge, turn in turns.items():
            there = net.driving_lanes(edge)
            if turn <= -STRAIGHT:
                pairs = [(0, 0)]
            elif turn >= STRAIGHT:
                pairs = [(count - 1, there - 1)]
            else:
                alone = left_lane and count > 1 and any(t >= STRAIGHT for t in turns.values())
                pairs = [(i, min(i, there - 1)) for i in range(count - alone) if i < there]
            if not onward and abs(turn) >= STRAIGHT and count > 1:
                pairs = pairs if turn < 0 else [(i, min(i, there - 1)) for i in range(1, count)]
            net.connect(arm.arriving, edge, pairs)


def _turn(arm: Arm, other: Arm) -> float:
    """Change of direction [rad] from arriving by one arm to leaving by another; left is positive."""
    return float((other.angle - (arm.angle + np.pi) + np.pi) % (2 * np.pi) - np.pi)


def cross_all(net: PlainNet, node: str, arms: Sequence[Arm], priority: bool = True) -> None:
    """A crosswalk over every arm of a junction."""
    for arm in arms:
        net.crossing(node, [arm.leaving, arm.arriving], priority)
