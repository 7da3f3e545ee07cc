"""Centre lines and borders of SUMO's lanes, and the connectors made of its internal lanes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from radp.geometry.lines import largest_curvature, offset, resample

SPACING = 1.0  # [m] between points of a line
AXIS_GAP = 0.005  # [m] opposite lanes stay this far apart, so that rounding never makes them overlap
CURVE_CHORD = 3.0  # [m] over which curvature is measured
LATERAL_ACCEL = 2.0  # [m/s^2] in bends
YAW_RATE = 0.5  # [rad/s] in bends
YIELDING = frozenset("msw=gZ")  # states of a link that has to wait for others


@dataclass(frozen=True)
class LaneLine:
    """A lane or connector: three lines of equal length (P, 2), its roadblock and its legal limit [m/s]."""

    name: str
    block: str
    center: np.ndarray
    left: np.ndarray
    right: np.ndarray
    limit: float

    @property
    def ring(self) -> np.ndarray:
        """The lane's area: left border, then right border backwards."""
        return np.concatenate([self.left, self.right[::-1]])


@dataclass(frozen=True)
class Connector:
    """A way through a junction: one lane in, one lane out, the internal lanes in between."""

    line: LaneLine
    source: str
    target: str
    from_edge: str
    to_edge: str
    node: str
    turn: str
    minor: bool
    tls: str
    link: int
    parts: tuple[str, ...]


def car_lanes(edge: Any) -> list[Any]:
    """Lanes on which a car may drive, right-most first."""
    return [lane for lane in edge.getLanes() if lane.allows("passenger")]


def shape_of(lane: Any) -> np.ndarray:
    """(P, 2): the lane's centre line without repeated points."""
    points = np.array(lane.getShape())[:, :2]
    keep = np.concatenate([[True], np.hypot(*np.diff(points, axis=0).T) > 1e-3])
    return points[keep]


def lay_lanes(edge: Any) -> list[LaneLine]:
    """The lanes of one edge, right-most first; neighbours share their border exactly."""
    lanes = car_lanes(edge)
    length = max(lane.getLength() for lane in lanes)
    count = max(3, round(length / SPACING) + 1)
    centers = [resample(shape_of(lane), SPACING, count) for lane in lanes]
    widths = [lane.getWidth() for lane in lanes]
    borders = [offset(centers[0], -widths[0] / 2)]
    for i in range(len(lanes) - 1):
        borders.append((offset(centers[i], widths[i] / 2) + offset(centers[i + 1], -widths[i + 1] / 2)) / 2)
    borders.append(offset(centers[-1], widths[-1] / 2 - AXIS_GAP))
    return [
        LaneLine(lane.getID(), edge.getID(), grid(centers[i]), grid(borders[i + 1]), grid(borders[i]), lane.getSpeed())
        for i, lane in enumerate(lanes)
    ]


def lay_connectors(net: Any, edge: Any) -> list[Connector]:
    """All ways for cars out of one edge; internal lanes that follow each other become one connector."""
    found = []
    for lane in car_lanes(edge):
        for link in sorted(lane.getOutgoing(), key=lambda c: c.getViaLaneID()):
            if link.getViaLaneID() and link.getToLane().allows("passenger"):
                found.append(_connector(net, lane, link))
    return found


def _connector(net: Any, lane: Any, link: Any) -> Connector:
    parts, via = [], link.getViaLaneID()
    while via:
        parts.append(via)
        onward = net.getLane(via).getOutgoing()
        via = onward[0].getViaLaneID() if onward else ""
    pieces = [shape_of(net.getLane(part)) for part in parts]
    points = np.concatenate([pieces[0], *(piece[1:] for piece in pieces[1:])])
    target = link.getToLane()
    points[0], points[-1] = shape_of(lane)[-1], shape_of(target)[0]
    center = resample(points, SPACING, max(3, round(np.hypot(*np.diff(points, axis=0).T).sum() / SPACING) + 1))
    width = np.linspace(lane.getWidth(), target.getWidth(), len(center)) / 2
    block = net.getLane(parts[0]).getEdge().getID()
    line = LaneLine(
        parts[0], block, grid(center), grid(offset(center, width)), grid(offset(center, -width)), lane.getSpeed()
    )
    return Connector(
        line=line,
        source=lane.getID(),
        target=target.getID(),
        from_edge=lane.getEdge().getID(),
        to_edge=target.getEdge().getID(),
        node=lane.getEdge().getToNode().getID(),
        turn=link.getDirection(),
        minor=link.getState() in YIELDING,
        tls=link.getTLSID() or "",
        link=int(link.getTLLinkIndex()),
        parts=tuple(parts),
    )


def speed_caps(net: Any) -> dict[str, float]:
    """Speed [m/s] at which the tightest bend of each bent lane is comfortable: min(sqrt(a / k), w / k)."""
    caps = {}
    for edge in net.getEdges():
        if edge.getFunction() in ("crossing", "walkingarea"):
            continue
        for lane in edge.getLanes():
            curvature = largest_curvature(shape_of(lane), CURVE_CHORD) if lane.allows("passenger") else 0.0
            if curvature > 1e-3:
                caps[lane.getID()] = float(min(np.sqrt(LATERAL_ACCEL / curvature), YAW_RATE / curvature))
    return dict(sorted(caps.items()))


def grid(points: np.ndarray) -> np.ndarray:
    """Positions on a grid of one millimetre."""
    return np.round(points, 3)
