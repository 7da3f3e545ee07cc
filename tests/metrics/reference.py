"""The metrics once more, slowly: plain Python and shapely, written from the definitions and not from the kernels."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import shapely
from scipy.signal import savgol_filter
from shapely.geometry import LineString, Point, Polygon

from radp.geometry.ragged import Polygons
from radp.scenario import ObjectType, RoadMap
from radp.sim.rollout import Rollout

MOVING = (ObjectType.VEHICLE, ObjectType.PEDESTRIAN, ObjectType.BICYCLE)


def shapes(polygons: Polygons) -> list[Any]:
    """shapely areas: the rings of an area combined by the even-odd rule."""
    out = []
    for i in range(len(polygons)):
        area = Polygon()
        for ring in polygons[i]:
            area = area.symmetric_difference(Polygon(ring))
        shapely.prepare(area)
        out.append(area)
    return out


def box(x: float, y: float, heading: float, length: float, width: float) -> Polygon:
    c, s = math.cos(heading), math.sin(heading)
    halves = ((1, 1), (-1, 1), (-1, -1), (1, -1))
    return Polygon([(x + a * c * length / 2 - b * s * width / 2, y + a * s * length / 2 + b * c * width / 2)
                    for a, b in halves])  # fmt: skip


class Road:
    """A road map as shapely areas and lists."""

    def __init__(self, road: RoadMap) -> None:
        self.connector = road.is_connector.tolist()
        self.areas = shapes(road.lane_polygons)
        self.lines = [LineString(line) for line in road.centerlines]
        self.after = [row.tolist() for row in road.successors]
        self.before = [row.tolist() for row in road.predecessors]
        limits = zip(road.speed_limit, road.has_speed_limit)
        self.limit = [float(limit) if known else None for limit, known in limits]
        self.block = road.roadblock.tolist()
        self.blocks = shapes(road.roadblocks.polygons)
        self.crossings = shapes(road.intersections.polygons)
        self.drivable = shapes(road.drivable.polygons) + self.crossings

    def inside(self, lanes: list[int], p: Point) -> list[int]:
        return [lane for lane in lanes if self.areas[lane].contains(p)]

    def search(self, p: Point) -> list[int]:
        here = self.inside(list(range(len(self.areas))), p)
        lanes = [lane for lane in here if not self.connector[lane]]
        return lanes[:1] or here

    def follow(self, lanes: list[int], p: Point) -> list[int]:
        kept = self.inside(lanes, p)
        if not kept and len(lanes) == 1:
            kept = self.inside(self.after[lanes[0]], p)
        return kept

    def in_crossing(self, p: Point) -> bool:
        return any(area.contains(p) for area in self.crossings)

    def route(self, points: list[Point]) -> list[list[int]]:
        rows: list[list[int]] = []
        for i, p in enumerate(points):
            row = self.follow(rows[-1], p) if rows and rows[-1] else []
            if not row:
                row = self.search(p)
                on_connector = i > 1 and bool(rows[-1]) and self.connector[rows[-1][0]]
                if on_connector and (self.connector[row[0]] if row else self.in_crossing(p)):
                    row = [lane for lane in rows[-1] if self.areas[lane].distance(p) < 5.0] or row
            rows.append(row)
        for i in range(len(rows) - 2, -1, -1):
            old, then = rows[i], rows[i + 1]
            if len(old) <= 1:
                continue
            if len(then) < len(old) and set(then) <= set(old):
                rows[i] = then
            if then and not self.connector[then[0]]:
                rows[i] = [lane for lane in old if lane in self.before[then[0]]] or rows[i]
        return rows

    def corner_rows(self, corners: list[list[Point]]) -> list[list[list[int]]]:
        frames: list[list[list[int]]] = []
        candidates: list[int] = []
        for i, points in enumerate(corners):
            rows = []
            for p in points:
                row = self.follow(candidates, p) if candidates else []
                if not row:
                    row = self.search(p)
                    if i == 1:
                        candidates = candidates + [lane for lane in row if lane not in candidates]
                rows.append(row)
            frames.append(rows)
            candidates = list(dict.fromkeys(lane for row in rows for lane in row))
        return frames

    def connected(self, rows: list[list[int]]) -> bool:
        front_left, rear_left, rear_right, front_right = (set(row) for row in rows)
        if not all(rows):
            return False
        if front_left & rear_left & rear_right & front_right:
            return True

        def grown(lanes: set[int], links: list[list[int]]) -> set[int]:
            return lanes | {other for lane in lanes for other in links[lane]}

        right_out, left_out = grown(rear_right, self.after), grown(rear_left, self.after)
        if not (rear_left & right_out) | (rear_right & left_out):
            return False
        one = grown(front_left, self.before) & right_out
        return bool(one & grown(front_right, self.before) & left_out)


class Slow:
    """All metrics of one rollout; attributes are named like those of the score."""

    def __init__(self, rollout: Rollout, road: Road) -> None:
        self.rollout, self.road, self.n = rollout, road, len(rollout.time_us)
        ego = rollout.ego
        self.speed = np.hypot(ego[:, 3], ego[:, 4])
        self.center = centers(ego)
        self.boxes = [box(p.x, p.y, h, 5.176, 2.297) for p, h in zip(self.center, ego[:, 2])]
        corners = [[Point(c) for c in b.exterior.coords[:4]] for b in self.boxes]
        self.route = road.route(self.center)
        rows = road.corner_rows(corners)
        self.connected = [road.connected(row) for row in rows]
        self.collisions = self._collisions()
        self.ttc = [self._ttc(i) for i in range(self.n)]
        self.drivable = float(not any(self._off_road(i, corners[i], rows[i]) for i in range(self.n)))
        self.direction_series = self._direction()
        self.progress = self._progress()
        self.speed_limit = self._speed_limit()
        self.comfort = self._comfort()

    def _angle(self, i: int, x: float, y: float) -> float:
        ex, ey, heading = self.rollout.ego[i, :3]
        turn = math.atan2(y - ey, x - ex) - heading
        return abs((turn + math.pi) % (2 * math.pi) - math.pi)

    def _agents(self, i: int) -> list[tuple[int, np.ndarray, float, Polygon]]:
        tracks = self.rollout.agents
        out = []
        for a in np.flatnonzero(tracks.valid[:, i]):
            state = tracks.state[a, i]
            speed = math.hypot(state[3], state[4]) if tracks.type[a] in MOVING else 0.0
            out.append((int(a), state, speed, box(*state[:3], *tracks.size[a, :2])))
        return out

    def _collisions(self) -> list[tuple[int, int, str, bool, float]]:
        """frame, object, type, at fault, delta v"""
        out, done = [], set()
        for i in range(self.n):
            ve = self.speed[i]
            for a, state, vo, shape in self._agents(i):
                if a in done or not self.boxes[i].intersects(shape):
                    continue
                done.add(a)
                front = LineString([self.boxes[i].exterior.coords[0], self.boxes[i].exterior.coords[3]])
                kind = (
                    "STOPPED_EGO" if ve <= 0.05
                    else "STOPPED_TRACK" if vo <= 0.05
                    else "ACTIVE_REAR" if self._angle(i, state[0], state[1]) > math.radians(150)
                    else "ACTIVE_FRONT" if front.intersects(shape)
                    else "ACTIVE_LATERAL"
                )  # fmt: skip
                fault = kind in ("STOPPED_TRACK", "ACTIVE_FRONT") or (
                    kind == "ACTIVE_LATERAL" and not self.connected[i]
                )
                turn = self.rollout.ego[i, 2] - state[2]
                relative = ve * ve + vo * vo - 2 * ve * vo * math.cos(turn)
                out.append((i, a, kind, fault, 0.5 * math.sqrt(max(relative, 0.0))))
        return out

    def _ttc(self, i: int) -> float:
        if any(frame == i and fault for frame, _, _, fault, _ in self.collisions):
            return 0.0
        if self.speed[i] <= 0.005:
            return math.inf
        gone = {a for frame, a, *_ in self.collisions if frame <= i}
        x, y, heading = self.rollout.ego[i, :3]
        beside = not self.connected[i] or self.road.in_crossing(Point(x, y))
        tracks = []
        for a, state, speed, _ in self._agents(i):
            angle = math.degrees(self._angle(i, state[0], state[1]))
            if a not in gone and (angle < 30 or (beside and angle <= 150)):
                tracks.append((state, speed, self.rollout.agents.size[a]))
        for k in range(1, 30):
            t = k * 0.1
            ego = box(self.center[i].x + t * self.speed[i] * math.cos(heading),
                      self.center[i].y + t * self.speed[i] * math.sin(heading), heading, 5.176, 2.297)  # fmt: skip
            for s, v, size in tracks:
                other = box(s[0] + t * v * math.cos(s[2]), s[1] + t * v * math.sin(s[2]), s[2], size[0], size[1])
                if ego.intersects(other):
                    return t
        return math.inf

    def _off_road(self, i: int, corners: list[Point], rows: list[list[int]]) -> bool:
        for p, row in zip(corners, rows):
            if row or any(area.contains(p) for area in self.road.drivable):
                continue
            if any(self.road.areas[lane].distance(p) < 0.3 for lane in self.route[i]):
                continue
            if min(area.distance(p) for area in self.road.drivable) >= 0.3:
                return True
        return False

    def _direction(self) -> list[float]:
        moved, last = [], None
        current = self.route[0][0] if self.route[0] else None
        for p, row in zip(self.center, self.route):
            if not row:
                moved.append(0.0)
            elif row[0] == current:
                s = self.road.lines[current].project(p)
                moved.append(s - last if last is not None and s != 0.0 else 0.0)
                last = s
            else:
                current, last = row[0], None
                moved.append(0.0)
        step = np.mean(np.diff(self.rollout.time_us)) if self.n > 1 else math.inf
        window = int(1e6 / step)
        return [sum(moved[max(0, i - window) : i + 1]) for i in range(self.n)]

    def _along(self, points: list[Point], pairs: list[tuple[int, int]]) -> float:
        road, now, total = self.road, 0, 0.0
        s = road.lines[pairs[0][1]].project(points[0])
        for p in points[1:]:
            for k in range(now, len(pairs)):
                if not road.blocks[pairs[k][0]].contains(p):
                    continue
                line = road.lines[pairs[k][1]]
                new = line.project(p)
                if k == now:
                    total += new - s
                else:
                    old = road.lines[pairs[now][1]]
                    total += old.length - s + new - line.project(Point(old.coords[-1]))
                    for j in range(now + 1, k):
                        skipped = road.lines[pairs[j][1]]
                        total += skipped.project(Point(road.lines[pairs[j + 1][1]].coords[0]))
                        total -= skipped.project(Point(road.lines[pairs[j - 1][1]].coords[-1]))
                now, s = k, new
                break
        return total

    def _progress(self) -> float:
        scenario = self.rollout.scenario
        expert = centers(scenario.ego[scenario.start :])
        kept: list[list[int]] = []
        for row in self.road.route(expert):
            if row and not (kept and set(row) & set(kept[-1])):
                kept.append(row)
        pairs: list[tuple[int, int]] = []
        for row in kept:
            if not pairs or self.road.block[row[0]] != pairs[-1][0]:
                pairs.append((self.road.block[row[0]], row[0]))
        if not pairs:
            return 1.0
        mine, theirs = self._along(self.center, pairs), self._along(expert, pairs)
        return 0.0 if mine < -2.0 else min(1.0, max(mine, 2.0) / max(theirs, 2.0))

    def _speed_limit(self) -> float:
        over = []
        for row, speed in zip(self.route, self.speed):
            if row and not self.road.connector[row[0]]:
                limits = [self.road.limit[row[0]]]
            else:
                limits = [self.road.limit[j] for lane in row for j in self.road.after[lane] + self.road.before[lane]]
            over.append(max(0.0, speed - max(limits)) if limits and all(limits) else 0.0)
        time = self.rollout.time_us
        duration = (time[-1] - time[0]) * 1e-6
        if not any(over) or duration == 0.0:
            return 1.0
        return max(0.0, 1.0 - sum(over) * np.mean(np.diff(time)) * 1e-6 / (2.23 * duration))

    def _comfort(self) -> dict[str, np.ndarray]:
        ego, step = self.rollout.ego, np.mean(np.diff(self.rollout.time_us)) * 1e-6 if self.n > 1 else 0.0
        if self.n < 4:
            return {}

        def smooth(x: np.ndarray, window: int, order: int, derivative: int = 0) -> np.ndarray:
            return np.round(savgol_filter(x, min(window, self.n), order, deriv=derivative, delta=step), 8)

        heading = np.unwrap(ego[:, 2])
        lon = smooth(ego[:, 5] + 1.461 * (ego[:, 7] ** 2 + ego[:, 8]), 8, 2)
        return {
            "lon_acceleration": lon,
            "lat_acceleration": smooth(ego[:, 6], 8, 2),
            "jerk": smooth(smooth(np.hypot(ego[:, 5], ego[:, 6]), 8, 2), 15, 2, 1),
            "lon_jerk": smooth(lon, 15, 2, 1),
            "yaw_acceleration": smooth(heading, 5, 3, 2),
            "yaw_rate": smooth(heading, 5, 2, 1),
        }


def centers(ego: np.ndarray) -> list[Point]:
    return [Point(x + 1.461 * math.cos(h), y + 1.461 * math.sin(h)) for x, y, h in ego[:, :3]]
