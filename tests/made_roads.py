"""Hand-made roads: few lanes with round numbers, and random patchworks that hold every odd case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from radp.scenario import RoadMap
from radp.scenario.neutral_json import map_from_json

WIDTH = 4.0  # m, of a lane
CONNECTOR = {"kind": "connector", "index": None}
Rect = tuple[float, float, float, float]  # x from, x to, y from, y to
Area = Rect | np.ndarray  # or its corners (n, 2)


def lane(
    name: str,
    points: Any,
    block: str,
    successors: Sequence[str] = (),
    index: int | None = 1,
    width: float = WIDTH,
    **more: Any,
) -> dict[str, Any]:
    """A lane as neutral JSON; `points` (n, 2) is its centre line, its borders lie half a width beside that."""
    line = np.asarray(points, dtype=np.float64)
    step = np.gradient(line, axis=0)
    normal = np.stack((-step[:, 1], step[:, 0]), 1) / np.hypot(*step.T)[:, None]
    row = {
        "id": name,
        "kind": "lane",
        "centerline": line.tolist(),
        "left": (line + width / 2 * normal).tolist(),
        "right": (line - width / 2 * normal).tolist(),
        "speed_limit_mps": None,
        "roadblock_id": block,
        "predecessors": [],
        "successors": list(successors),
        "index": index,
        "stop_line_ids": [],
    }
    return row | more


def box_lane(
    name: str,
    rect: Rect,
    kind: str = "lane",
    after: Sequence[str] = (),
    before: Sequence[str] = (),
    limit: float | None = 10.0,
    block: str | None = None,
) -> dict[str, Any]:
    """A lane or connector along +x that fills a rectangle; it leads to `after` and follows `before`."""
    x0, x1, y0, y1 = rect
    middle = [(x0, (y0 + y1) / 2.0), (x1, (y0 + y1) / 2.0)]
    more = {"kind": kind, "speed_limit_mps": limit, "predecessors": list(before)}
    return lane(name, middle, block or f"block of {name}", after, None, y1 - y0, **more)


def road(*lanes: dict[str, Any], **areas: Sequence[Area]) -> RoadMap:
    """A map of lanes that are linked both ways, and of areas as in `patches`."""
    rows = {row["id"]: row for row in lanes}
    for row in lanes:
        for follower in row["successors"]:
            rows[follower]["predecessors"] = [*rows[follower]["predecessors"], row["id"]]
    return patches(list(lanes), **areas)


def patches(
    lanes: list[dict[str, Any]],
    crossings: Sequence[Area] = (),
    drivable: Sequence[Area] = (),
    stops: Sequence[Area] = (),
) -> RoadMap:
    """A map of lanes as they are, and of areas with the ids 0, 1, ..."""
    kinds = {"intersections": crossings, "drivable_areas": drivable, "stop_lines": stops}
    areas = {
        kind: [{"id": str(i), "polygon": np.asarray(_corners(area)).tolist()} for i, area in enumerate(found)]
        for kind, found in kinds.items()
    }
    return map_from_json({"lanes": lanes, **areas})


def _corners(area: Area) -> np.ndarray:
    return square(area[0], area[2], area[1], area[3]) if np.ndim(area) == 1 else np.asarray(area)


def square(x0: float, y0: float, x1: float, y1: float) -> np.ndarray:
    return np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)])


def fork() -> RoadMap:
    """a, then left or straight on; straight on goes on for long."""
    return road(
        lane("1", [(0, 0), (60, 0)], "a", ("2", "3")),
        lane("2", [(60, 0), (70, 3), (75, 15)], "left", ("5",), **CONNECTOR),
        lane("3", [(60, 0), (75, 0)], "straight", ("4",), **CONNECTOR),
        lane("4", [(75, 0), (500, 0)], "b"),
        lane("5", [(75, 15), (75, 500)], "c"),
    )


def patchwork(seed: int, size: float = 60.0) -> RoadMap:
    """Lanes on some cells of a grid, connectors anywhere over them; overlaps, gaps, links and roadblocks at random."""
    random = np.random.default_rng((seed, 5))

    def anywhere(least: float, most: float) -> Rect:
        x, y = random.uniform(0.0, size, 2)
        width, height = random.uniform(least, most, 2)
        return x, x + width, y, y + height

    cells = [(x, x + 11.7, y, y + 8.3) for x in np.arange(0.0, size, 12.0) for y in np.arange(0.0, size, 8.5)]
    lanes = [f"{i}" for i in range(len(cells)) if random.random() < 0.45]
    connectors = [f"{1000 + i}" for i in range(25)]

    def some(names: list[str], most: int) -> tuple[str, ...]:
        return tuple(random.choice(names, random.integers(0, most + 1), replace=False).tolist())

    def limit() -> float | None:
        return float(random.uniform(3.0, 12.0)) if random.random() < 0.7 else None

    blocks = [f"b{i}" for i in range(12)]
    rows = [
        box_lane(
            name, cells[int(name)], "lane", some(connectors, 3), some(connectors, 3), limit(), random.choice(blocks)
        )
        for name in lanes
    ]
    rows += [
        box_lane(name, anywhere(6.0, 20.0), "connector", some(lanes, 2), some(lanes, 2), limit(), random.choice(blocks))
        for name in connectors
    ]
    crossings = tuple(anywhere(10.0, 25.0) for _ in range(5))
    return patches(rows, crossings, tuple(anywhere(5.0, 20.0) for _ in range(6)))


def line(x0: float, y0: float, x1: float, y1: float, spacing: float = 1.0) -> np.ndarray:
    """Points from one place to another, about `spacing` apart."""
    count = max(2, round(np.hypot(x1 - x0, y1 - y0) / spacing) + 1)
    return np.linspace((x0, y0), (x1, y1), count)


def arc(x: float, y: float, heading: float, radius: float, angle: float, count: int = 20) -> np.ndarray:
    """Points of a bend that starts at a pose; positive angles bend to the left."""
    turn = np.linspace(0.0, angle, count) * np.sign(angle)
    side = np.sign(angle)
    local = np.column_stack([np.sin(turn), side * (1 - np.cos(turn))]) * radius
    c, s = np.cos(heading), np.sin(heading)
    return local @ np.array([[c, s], [-s, c]]) + (x, y)


class RoadMaker:
    """Collects lanes that are named 0, 1, ..., each a roadblock of its own."""

    def __init__(self) -> None:
        self.lanes: list[dict[str, Any]] = []
        self.stops: list[np.ndarray] = []
        self.crossings: list[np.ndarray] = []

    def add(
        self, centre: np.ndarray, after: Sequence[int] = (), connector: bool = False, limit: float = 0.0,
        stops: Sequence[np.ndarray] = (),
    ) -> int:  # fmt: skip
        """Append a lane or connector that follows the lanes `after`; returns its index."""
        first = len(self.stops)
        self.stops.extend(stops)
        self.lanes.append({
            "centre": centre, "after": list(after), "connector": connector, "limit": limit,
            "stops": list(range(first, len(self.stops))),
        })  # fmt: skip
        return len(self.lanes) - 1

    def build(self) -> RoadMap:
        rows = []
        for i, made in enumerate(self.lanes):
            after = [str(j) for j, other in enumerate(self.lanes) if i in other["after"]]
            more = {
                "kind": "connector" if made["connector"] else "lane", "speed_limit_mps": made["limit"] or None,
                "stop_line_ids": [str(stop) for stop in made["stops"]],
            }  # fmt: skip
            rows.append(lane(str(i), made["centre"], str(i), after, index=None, **more))
        return road(*rows, crossings=self.crossings, stops=self.stops)
