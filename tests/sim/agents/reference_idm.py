"""A slow, plain implementation of the reactive agents on shapely objects: the reference for the compiled one.

It follows the published behaviour rule by rule, one agent at a time, with no shortcut; nothing is shared with
`radp.sim.agents` but the types of the log.
"""

from __future__ import annotations

from collections import deque

import numpy as np
import shapely

from radp.scenario import LightState, ObjectType, Scenario

OPEN_LOOP = (ObjectType.PEDESTRIAN, ObjectType.BARRIER, ObjectType.CZONE_SIGN, ObjectType.TRAFFIC_CONE,
             ObjectType.GENERIC_OBJECT)  # fmt: skip
MIN_GAP, HEADWAY, ACCEL, DECEL, MIN_PATH, RADIUS = 1.0, 1.5, 1.0, 2.0, 20.0, 100.0


def wrap(angle: float) -> float:
    return float((angle + np.pi) % (2 * np.pi) - np.pi)


def box_polygon(x: float, y: float, heading: float, length: float, width: float) -> shapely.Polygon:
    along = np.array([np.cos(heading), np.sin(heading)]) * length / 2
    left = np.array([-np.sin(heading), np.cos(heading)]) * width / 2
    centre = np.array([x, y])
    return shapely.Polygon([centre + along + left, centre - along + left, centre - along - left, centre + along - left])


def ego_polygon(ego: np.ndarray) -> shapely.Polygon:
    x, y = ego_centre(ego)
    return box_polygon(x, y, ego[2], 5.176, 2.297)


def ego_centre(ego: np.ndarray) -> tuple[float, float]:
    return ego[0] + 1.461 * np.cos(ego[2]), ego[1] + 1.461 * np.sin(ego[2])


def nearest_pose(line: shapely.LineString, point: shapely.Point) -> tuple[float, float, float, float]:
    """x, y, heading and arc length of the nearest point of a centre line; heading from a chord of 0.5 m."""
    s = line.project(point)
    a, b = line.interpolate(s), line.interpolate(s + 0.5)
    if a == b:
        a, b = line.interpolate(s - 0.5), a
        return b.x, b.y, float(np.arctan2(b.y - a.y, b.x - a.x)), s
    return a.x, a.y, float(np.arctan2(b.y - a.y, b.x - a.x)), s


def start_curvature(line: shapely.LineString) -> float:
    """|curvature| of the circle through three points 2 m apart at the start."""
    stops = (0.0, 2.0, 4.0) if line.length >= 4.0 else (0.0, line.length / 2, line.length)
    p, q, r = (line.interpolate(s) for s in stops)
    a, b, c = p.distance(q), q.distance(r), r.distance(p)
    square = (a + (b + c)) * (c - (a - b)) * (c + (a - b)) * (a + (b - c))
    if square < 1e-6 or np.isclose(a * b * c, 0.0):
        return 0.0
    return float(np.sqrt(square) / (a * b * c))


class Path:
    """Vertices (x, y, heading) with their progress."""

    def __init__(self, states: np.ndarray):
        progress = np.append(0.0, np.cumsum(np.linalg.norm(np.diff(states[:, :2], axis=0), axis=1)))
        keep = np.append(~np.isclose(np.diff(progress), 0.0), False)
        if keep.sum() < 2:
            keep = np.append(~np.isclose(np.diff(progress), 0.0), True)
        self.states, self.progress = states[keep], progress[keep]
        self.unwrapped = np.unwrap(self.states[:, 2])

    def clamp(self, s: float) -> float:
        return max(self.progress[0], min(s, self.progress[-1]))

    def at(self, s: float) -> np.ndarray:
        columns = (self.states[:, 0], self.states[:, 1], self.unwrapped)
        x, y, heading = (np.interp(s, self.progress, column) for column in columns)
        return np.array([x, y, wrap(heading)])

    def after(self, s: float) -> np.ndarray:
        rest = self.progress > s
        return np.vstack([self.at(s), self.states[rest]]) if rest.any() else self.states[-2:]

    def between(self, start: float, end: float) -> np.ndarray:
        if not (self.progress > start).any():
            return self.states[-2:]
        if not (self.progress < end).any():
            return self.states[:2]
        middle = (self.progress > start) & (self.progress < end)
        return np.vstack([self.at(start), self.states[middle], self.at(end)])


def strip(states: np.ndarray, width: float) -> shapely.Polygon:
    return shapely.LineString(states[:, :2]).buffer(width / 2, cap_style="flat")


class Agent:
    def __init__(self, world: ReferenceIdm, track: int, lane: int, pose: tuple, target: float):
        tracks, frame = world.scenario.tracks, world.scenario.start
        self.track, self.name = track, tracks.ids[track]
        self.length, self.width = tracks.size[track, :2]
        self.speed = float(np.hypot(*tracks.state[track, frame, 3:5]))
        self.route, self.target = deque([lane], maxlen=5), target
        self.path, self.progress = Path(world.lane_states[lane]), pose[3]
        self.occupancy = box_polygon(*pose[:3], self.length, self.width)
        self.settle()

    def settle(self) -> None:
        self.pose = self.path.at(self.path.clamp(self.progress))

    @property
    def to_go(self) -> float:
        return self.path.progress[-1] - self.progress

    def remaining(self) -> np.ndarray:
        return self.path.after(self.path.clamp(self.progress))

    def sweep(self) -> shapely.Polygon:
        start = self.path.clamp(self.progress - self.length / 2)
        end = self.path.clamp(self.progress + self.length / 2 + self.speed * HEADWAY)
        ahead = strip(self.path.between(start, end), self.width)
        return shapely.unary_union([ahead, box_polygon(*self.pose, self.length, self.width)])


class ReferenceIdm:
    """One world."""

    def __init__(self, scenario: Scenario):
        road = scenario.map
        self.scenario = scenario
        self.lines = [shapely.LineString(line) for line in road.centerlines]
        self.areas = [shapely.Polygon(road.lane_polygons[i][0]) for i in range(len(road))]
        self.crossings = [shapely.Polygon(rings[0], rings[1:]) for rings in map(road.intersections.polygons.__getitem__,
                          range(len(road.intersections)))]  # fmt: skip
        self.curvature = [start_curvature(line) for line in self.lines]
        self.lane_states = []
        for line in road.centerlines:
            step = np.diff(line, axis=0)
            heading = np.arctan2(step[:, 1], step[:, 0])
            self.lane_states.append(np.column_stack([line, np.append(heading, heading[-1])]))
        self.stops = [self.stops_of(lane) for lane in range(len(road))]
        self.ties = 0

    def stops_of(self, lane: int) -> list[tuple[int, shapely.Polygon]]:
        road = self.scenario.map
        listed = [(int(k), shapely.Polygon(road.stop_lines.polygons[k][0])) for k in road.lane_stop_lines[lane]]
        touching = [(k, area) for k, area in listed if area.intersects(self.lines[lane])]
        if touching or not listed:
            return touching
        first = shapely.Point(self.lines[lane].coords[0])
        return [listed[int(np.argmin([first.distance(area) for _, area in listed]))]]

    def open_loop(self, sample: int) -> list[int]:
        frame = min(self.scenario.start + sample, len(self.scenario.time_us) - 1)
        tracks = self.scenario.tracks
        return [
            i for kind in OPEN_LOOP for i in range(len(tracks)) if tracks.type[i] == kind and tracks.valid[i, frame]
        ]

    def open_loop_polygon(self, track: int, sample: int) -> shapely.Polygon:
        frame = min(self.scenario.start + sample, len(self.scenario.time_us) - 1)
        return box_polygon(*self.scenario.tracks.state[track, frame, :3], *self.scenario.tracks.size[track, :2])

    def lane_of(self, x: float, y: float, heading: float) -> int | None:
        road, point = self.scenario.map, shapely.Point(x, y)
        inside = [i for i in range(len(road)) if not road.is_connector[i] and self.areas[i].contains(point)]
        if not inside and any(area.contains(point) for area in self.crossings):
            inside = [i for i in range(len(road)) if road.is_connector[i] and self.areas[i].contains(point)]
        if not inside:
            return None
        turns = [abs(nearest_pose(self.lines[i], point)[2] - heading) for i in inside]
        return inside[int(np.argmin(turns))]

    def reset(self, ego: np.ndarray) -> None:
        tracks, frame, road = self.scenario.tracks, self.scenario.start, self.scenario.map
        taken = [self.open_loop_polygon(i, 0) for i in self.open_loop(0)] + [ego_polygon(ego)]
        target, self.agents = 10.0, []
        for i in np.flatnonzero((tracks.type == ObjectType.VEHICLE) & tracks.valid[:, frame]):
            x, y, heading = tracks.state[i, frame, :3]
            lane = self.lane_of(x, y, heading)
            if lane is None:
                continue
            pose = nearest_pose(self.lines[lane], shapely.Point(x, y))
            box = box_polygon(*pose[:3], *tracks.size[i, :2])
            if any(box.intersects(other) for other in taken):
                continue
            taken.append(box)
            target = float(road.speed_limit[lane]) or target
            self.agents.append(Agent(self, int(i), lane, pose, target))

    def lights(self, sample: int) -> dict[int, int]:
        frame = min(self.scenario.start + sample, len(self.scenario.time_us) - 1)
        return {
            int(lane): int(state) for lane, state in zip(self.scenario.lights.lane, self.scenario.lights.state[frame])
        }

    def extend(self, agent: Agent, lights: dict[int, int]) -> None:
        road = self.scenario.map
        while agent.to_go < MIN_PATH + agent.target * HEADWAY:
            open_edges = []
            for lane in road.successors[agent.route[-1]]:
                state = lights.get(int(lane), LightState.ABSENT)
                signalled = road.is_connector[lane] and len(road.lane_stop_lines[lane]) > 0
                if state == LightState.GREEN if signalled else state != LightState.RED:
                    open_edges.append(int(lane))
            if not open_edges:
                return
            lane = open_edges[int(np.argmin([self.curvature[i] for i in open_edges]))]
            agent.route.append(lane)
            agent.path = Path(np.vstack([agent.remaining(), self.lane_states[lane]]))
            agent.progress = 0.0

    def step(self, sample: int, ego: np.ndarray, dt: float) -> None:
        """Move all agents from `sample` to the next one, with the ego where it stands at `sample`."""
        lights, centre = self.lights(sample + 1), ego_centre(ego)
        self.agents = [a for a in self.agents if np.hypot(a.pose[0] - centre[0], a.pose[1] - centre[1]) <= RADIUS]
        others = [("ego", ego_polygon(ego))]
        others += [(f"object {i}", self.open_loop_polygon(i, sample + 1)) for i in self.open_loop(sample + 1)]
        for agent in self.agents:
            self.extend(agent, lights)
            red = {
                k: area for lane in agent.route if lights.get(lane) == LightState.RED for k, area in self.stops[lane]
            }
            present = [(a, a.occupancy) for a in self.agents] + others + [("stop line", area) for area in red.values()]
            gap, lead_speed = self.lead(agent, present, ego)
            self.move(agent, gap, lead_speed, dt)

    def lead(self, agent: Agent, present: list, ego: np.ndarray) -> tuple[float, float]:
        corridor = strip(agent.remaining(), agent.width)
        tree = shapely.STRtree([area for _, area in present])
        hits = [present[i] for i in tree.query(corridor) if present[i][1].intersects(corridor)]
        hits = [(who, area) for who, area in hits if who is not agent]
        if not hits:
            return agent.to_go - agent.length / 2, 0.0
        nearest = int(shapely.STRtree([area for _, area in hits]).nearest(agent.occupancy))
        distances = [agent.occupancy.distance(area) for _, area in hits]
        self.ties += sum(d == min(distances) for d in distances) > 1
        who, gap = hits[nearest][0], distances[nearest]
        if isinstance(who, Agent):
            return gap, who.speed * np.cos(wrap(who.pose[2] - agent.pose[2]))
        if who == "ego":
            return gap, float(np.hypot(ego[3], ego[4]) * np.cos(wrap(ego[2] - agent.pose[2])))
        return gap, 0.0

    def move(self, agent: Agent, gap: float, lead_speed: float, dt: float) -> None:
        limit = self.scenario.map.speed_limit[agent.route[-1]]
        agent.target = float(limit) if limit > 0 else agent.target
        v = agent.speed
        wish = MIN_GAP + v * HEADWAY + v * (v - lead_speed) / (2 * np.sqrt(ACCEL * DECEL))
        accel = ACCEL * (1 - (v / agent.target) ** 4 - (wish / max(gap, MIN_GAP)) ** 2)
        agent.progress += v * dt
        agent.speed = max(0.0, v + dt * min(max(accel, -DECEL), ACCEL))
        agent.settle()
        agent.occupancy = agent.sweep()
