"""The route under a plan once more, in plain Python and in loops: an independent reference for `radp.rules.route`.

A lane is a list of points, each a list of the columns of `LaneColumn`; None stands for a row that is missing.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from radp.scene.scene import LaneColumn

Point = tuple[float, float]
LINK_GAP, SIDE_BY_SIDE, SAME_WAY = 1.5, 15.0, 0.8


def minus(a: Point, b: Point) -> Point:
    return a[0] - b[0], a[1] - b[1]


def dot(a: Point, b: Point) -> float:
    return a[0] * b[0] + a[1] * b[1]


def cross(a: Point, b: Point) -> float:
    return a[0] * b[1] - a[1] * b[0]


@dataclass(frozen=True)
class PlainLane:
    """What is known of one lane by itself."""

    points: list[Point]
    left: list[Point]
    right: list[Point]
    is_red: bool
    is_green: bool

    @classmethod
    def of(cls, rows: list[list[float]]) -> PlainLane:
        points, left, right = ([(row[c], row[c + 1]) for row in rows] for c in (0, 4, 6))
        return cls(points, left, right, rows[0][LaneColumn.IS_RED] > 0.5, rows[0][LaneColumn.IS_GREEN] > 0.5)

    def way(self, k: int) -> Point:
        k = min(k, len(self.points) - 2)
        step = minus(self.points[k + 1], self.points[k])
        return step[0] / math.hypot(*step), step[1] / math.hypot(*step)

    def along(self, k: int) -> float:
        return sum(math.dist(self.points[i], self.points[i + 1]) for i in range(k))

    @property
    def length(self) -> float:
        return self.along(len(self.points) - 1)

    def nearest(self, point: Point) -> int:
        return min(range(len(self.points)), key=lambda k: math.dist(self.points[k], point))

    def gap(self, point: Point) -> float:
        return math.dist(self.points[self.nearest(point)], point)

    def station(self, point: Point) -> float:
        """Where a point lies along this lane, by the direction at its nearest vertex."""
        k = self.nearest(point)
        return self.along(k) + dot(minus(point, self.points[k]), self.way(k))


class PlainRoute:
    """Lanes of one scene, put in driving order."""

    def __init__(self, rows: list[list[list[float]] | None], links: list[tuple[int, int]] | None) -> None:
        self.lanes = {i: PlainLane.of(row) for i, row in enumerate(rows) if row is not None}
        met = [
            (i, j)
            for i, a in self.lanes.items()
            for j, b in self.lanes.items()
            if i != j and math.dist(a.points[-1], b.points[0]) < LINK_GAP
        ]
        self.links = met if links is None else links
        self.start = self.starts()

    def starts(self) -> dict[int, float]:
        """Progress at the start of each lane."""
        origin = (0.0, 0.0)
        found = {
            i: -lane.station(origin)
            for i, lane in self.lanes.items()
            if 0 <= lane.station(origin) <= lane.length and lane.gap(origin) <= SIDE_BY_SIDE and lane.way(0)[0] > -0.5
        }
        if not found and self.lanes:
            nearest = min(self.lanes, key=lambda i: self.lanes[i].gap(origin))
            found = {nearest: -self.lanes[nearest].station(origin)}
        while new := self.next_to(found):
            found = {**found, **new}
        for i in self.lanes.keys() - found.keys():
            start = self.lanes[i].points[0]
            j = min(sorted(found), key=lambda j: self.lanes[j].gap(start))
            new[i] = found[j] + self.lanes[j].station(start)
        return {**found, **new}

    def next_to(self, found: dict[int, float]) -> dict[int, float]:
        """Starts of the lanes that are not placed yet and lead to one that is, or follow one."""
        new = {}
        for i in self.lanes.keys() - found.keys():
            before = [found[a] + self.lanes[a].length for a, b in self.links if b == i and a in found]
            after = [found[b] - self.lanes[i].length for a, b in self.links if a == i and b in found]
            if before or after:
                new[i] = max(before) if before else min(after)
        return new

    def end(self) -> float:
        return max([0.0, *(self.start[i] + lane.length for i, lane in self.lanes.items())])

    def stop_line(self, minimum: float) -> float:
        red = [self.start[i] for i, lane in self.lanes.items() if lane.is_red]
        return min([math.inf, *(at for at in red if at >= minimum)])

    def red_line(self, minimum: float) -> float:
        parts = {b for a, b in self.links if self.lanes[a].is_red}
        red = [self.start[i] for i, lane in self.lanes.items() if lane.is_red and i not in parts]
        return min([math.inf, *(at for at in red if at > minimum)])

    def lane_at(self, point: Point) -> int:
        return min(self.lanes, key=lambda i: self.lanes[i].gap(point))

    def curvature(self, point: Point) -> float:
        lane = self.lanes[self.lane_at(point)]
        k = lane.nearest(point)
        a, b = max(0, k - 2), min(len(lane.points) - 1, k + 2)
        return abs(math.asin(cross(lane.way(a), lane.way(b)))) / (lane.along(b) - lane.along(a))

    def undecided(self, point: Point) -> bool:
        """The point lies beyond a corner: both segments are as near, and rounding decides."""
        lane = self.lanes[self.lane_at(point)]
        k = lane.nearest(point)
        return 0 < k < len(lane.points) - 1 and abs(apart(point, lane, k) - apart(point, lane, k - 1)) < 1e-9

    def match(self, point: Point) -> dict[str, float | Point]:
        i = self.lane_at(point)
        lane, k = self.lanes[i], self.lanes[i].nearest(point)
        if k > 0 and (k == len(lane.points) - 1 or apart(point, lane, k) > apart(point, lane, k - 1)):
            k -= 1
        tangent = lane.way(k)
        normal = -tangent[1], tangent[0]
        share = part(point, lane, k)
        foot, left, right = (between(line[k], line[k + 1], share) for line in (lane.points, lane.left, lane.right))
        reach = [self.beside(j, point, foot, tangent) for j in self.lanes]
        return {
            "anchor": lane.points[k],
            "tangent": tangent,
            "station": self.start[i] + lane.along(k),
            "left_width": max(dot(left, normal), *(one[0] for one in reach)),
            "right_width": max(-dot(right, normal), *(one[1] for one in reach)),
        }

    def beside(self, j: int, point: Point, foot: Point, tangent: Point) -> tuple[float, float]:
        """How far lane j reaches to the left and to the right of the foot; minus infinity if it is not beside it."""
        lane, normal = self.lanes[j], (-tangent[1], tangent[0])
        k = lane.nearest(point)
        gap, way = minus(lane.points[k], foot), lane.way(k)
        ahead, cos = dot(gap, tangent), dot(way, tangent)
        if cos < SAME_WAY or abs(ahead) > lane.length / (len(lane.points) - 1):
            return -math.inf, -math.inf
        offset = dot(gap, normal) - ahead * dot(way, normal) / cos  # of the line through that vertex, beside the foot
        if abs(offset) > SIDE_BY_SIDE:
            return -math.inf, -math.inf
        return offset + dot(lane.left[k], normal), -offset - dot(lane.right[k], normal)


def part(point: Point, lane: PlainLane, k: int) -> float:
    """Which share of segment k lies before the point; 0 to 1."""
    step = minus(lane.points[k + 1], lane.points[k])
    return min(1.0, max(0.0, dot(minus(point, lane.points[k]), step) / dot(step, step)))


def between(a: Point, b: Point, share: float) -> Point:
    return a[0] + share * (b[0] - a[0]), a[1] + share * (b[1] - a[1])


def apart(point: Point, lane: PlainLane, k: int) -> float:
    return math.dist(point, between(lane.points[k], lane.points[k + 1], part(point, lane, k)))
