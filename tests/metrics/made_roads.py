"""Small road maps by hand, and random patchworks that hold every odd case: overlaps, gaps, loose ends."""

from __future__ import annotations

from typing import Any

import numpy as np

from radp.scenario import RoadMap
from radp.scenario.neutral_json import map_from_json

Rect = tuple[float, float, float, float]  # x from, x to, y from, y to


def lane(
    name: str,
    rect: Rect,
    kind: str = "lane",
    after: tuple[str, ...] = (),
    before: tuple[str, ...] = (),
    limit: float | None = 10.0,
    block: str | None = None,
) -> dict[str, Any]:
    """A straight lane or connector along +x, in neutral JSON."""
    x0, x1, y0, y1 = rect
    middle = (y0 + y1) / 2.0
    return {
        "id": name, "kind": kind, "centerline": [[x0, middle], [x1, middle]], "left": [[x0, y1], [x1, y1]],
        "right": [[x0, y0], [x1, y0]], "speed_limit_mps": limit, "roadblock_id": block or f"block of {name}",
        "predecessors": list(before), "successors": list(after), "index": None, "stop_line_ids": [],
    }  # fmt: skip


def area(name: str, rect: Rect) -> dict[str, Any]:
    x0, x1, y0, y1 = rect
    return {"id": name, "polygon": [[x0, y0], [x1, y0], [x1, y1], [x0, y1]]}


def road(lanes: list[dict[str, Any]], crossings: tuple[Rect, ...] = (), drivable: tuple[Rect, ...] = ()) -> RoadMap:
    """A map of lanes from `lane` and rectangular areas."""
    return map_from_json(
        {
            "lanes": lanes,
            "intersections": [area(f"crossing {i}", rect) for i, rect in enumerate(crossings)],
            "drivable_areas": [area(f"area {i}", rect) for i, rect in enumerate(drivable)],
        }
    )


def patchwork(seed: int, size: float = 60.0) -> RoadMap:
    """Lanes on some cells of a grid, connectors anywhere over them, links and roadblocks at random."""
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
        lane(name, cells[int(name)], "lane", some(connectors, 3), some(connectors, 3), limit(), random.choice(blocks))
        for name in lanes
    ]
    rows += [
        lane(name, anywhere(6.0, 20.0), "connector", some(lanes, 2), some(lanes, 2), limit(), random.choice(blocks))
        for name in connectors
    ]
    crossings = tuple(anywhere(10.0, 25.0) for _ in range(5))
    return road(rows, crossings, tuple(anywhere(5.0, 20.0) for _ in range(6)))
