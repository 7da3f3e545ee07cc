"""A scenario as a small picture: SVG paths in whole numbers, a few hundred bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import shapely

WIDTH, HEIGHT = 240, 150  # units of the picture
MARGIN = 25.0  # m around the paths
LEAST = 70.0  # m that the picture is wide, at least


def thumbnail(road: Sequence[np.ndarray], paths: Sequence[np.ndarray]) -> dict[str, object]:
    """road: rings (P, 2), paths: lines (P, 2), world [m] -> SVG path strings and the paths' ends."""
    points = np.concatenate([*paths])
    center = (points.min(0) + points.max(0)) / 2
    span = points.max(0) - points.min(0) + 2 * MARGIN
    scale = WIDTH / max(LEAST, span[0], span[1] * WIDTH / HEIGHT)

    def place(line: np.ndarray) -> np.ndarray:
        return (line - center) * scale * (1.0, -1.0) + (WIDTH / 2, HEIGHT / 2)

    frame = shapely.box(-20, -20, WIDTH + 20, HEIGHT + 20)
    rings = [shapely.Polygon(place(ring)) for ring in road if len(ring) >= 3]
    seen = [shapely.intersection(shapely.make_valid(ring), frame).simplify(0.7) for ring in rings]
    outlines = [
        shapely.get_coordinates(ring)[:-1]
        for part in shapely.get_parts(np.array(seen, dtype=object))
        if part.geom_type == "Polygon"
        for ring in shapely.get_rings(part)
    ]
    lines = [shapely.get_coordinates(shapely.LineString(place(_line(path))).simplify(0.5)) for path in paths]
    return {
        "road": "".join(_path(outline, closed=True) for outline in outlines),
        "paths": [_path(line) for line in lines],
        "ends": [np.round(line[-1]).astype(int).tolist() for line in lines],
    }


def _line(path: np.ndarray) -> np.ndarray:
    return path if len(path) > 1 else np.repeat(path, 2, axis=0)


def _path(points: np.ndarray, closed: bool = False) -> str:
    """M and relative l of whole numbers; repeated points are dropped. A point alone gives a line of no length."""
    whole = np.round(points).astype(int)
    steps = np.diff(whole, axis=0)
    steps = steps[(steps != 0).any(1)]
    moves = " ".join(f"{x},{y}" for x, y in steps) or "0,0"
    return f"M{whole[0, 0]},{whole[0, 1]}l{moves}{'z' if closed else ''}"
