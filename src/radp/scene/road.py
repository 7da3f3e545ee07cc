"""What the rules of the road look at beside the route: kinds of objects, crosswalks, lanes around, the border.

Plain numpy: this is built only where such rules judge, and a kernel would cost more to compile than it saves.
"""

from __future__ import annotations

import numpy as np
import shapely

from radp.geometry.segments import distances_to_segments
from radp.road.border import drivable_border
from radp.road.crossings import Crossings, lane_crossings
from radp.road.lane_lines import LANE_POINTS, LaneTable
from radp.road.road_map import RoadMap
from radp.scenario import ObjectType

LANES = 40  # around the ego
BORDERS = 320  # pieces of border
BORDER_REACH = 60.0  # m around the ego
LANE_LENGTH = 50.0  # m, of the parts of lanes that rules look at
SOON = 3.0  # s within which somebody who walks on reaches the crosswalk
LOOK = 0.5  # s between the places where somebody is looked for
LONGEST = 8.0  # s
WALKERS = (ObjectType.PEDESTRIAN, ObjectType.BICYCLE)

_PREFIX = "rules.road."


def road_shapes(objects: int) -> dict[str, tuple[int, ...]]:
    """Arrays of a RoadView for one moment, by name."""
    shapes: dict[str, tuple[int, ...]] = {
        "object_types": (objects,), "object_past": (objects, 2), "object_crossing": (objects, 3),
        "lanes": (LANES, LANE_POINTS, 4), "border": (BORDERS, 4), "border_reach": (1,),
    }  # fmt: skip
    return {_PREFIX + name: shape for name, shape in shapes.items()}


def fill_road_objects(
    rows: dict[str, np.ndarray], states: np.ndarray, valid: np.ndarray, types: np.ndarray, pose: np.ndarray
) -> None:
    """Kinds of the objects, and where each was in the first frame in which it is known; states (k, A, 5)."""
    who = rows["rules.object_tracks"]
    there = np.flatnonzero(who >= 0)
    tracks = who[there]
    first = valid[:, tracks].argmax(0)
    rows[_PREFIX + "object_types"][there] = types[tracks]
    rows[_PREFIX + "object_past"][there] = _to_ego(states[first, tracks, :2], pose)


def fill_road(
    rows: dict[str, np.ndarray],
    road_map: RoadMap,
    table: LaneTable,
    near: np.ndarray,
    on_route: np.ndarray,
    states: np.ndarray,
    pose: np.ndarray,
) -> None:
    """Crosswalks, lanes and border; `near` and `on_route` are rows of the table, nearest first, states (A, 5) now."""
    lines = table.lines[near[:LANES]]  # (n, 20, 6)
    out = rows[_PREFIX + "lanes"][: len(lines)]
    out[..., :2] = _to_ego(lines[..., :2], pose)
    out[..., 2:] = np.linalg.norm(lines[..., 2:].reshape(*lines.shape[:2], 2, 2) - lines[..., None, :2], axis=-1)
    border = drivable_border(road_map)
    rows[_PREFIX + "border_reach"][0] = _fill_border(border, pose, rows[_PREFIX + "border"]) if len(border) else 0.0
    crossings = lane_crossings(road_map, LANE_LENGTH)
    mine = [int(k) for row in on_route for k in np.flatnonzero(crossings.row == row)]
    if mine:
        _fill_crossings(rows, crossings, mine, states, pose)


def _to_ego(points: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """(..., 2) world -> (..., 2) in the frame of the pose (3,)."""
    c, s = np.cos(pose[2]), np.sin(pose[2])
    return (points - pose[:2]) @ np.array([[c, -s], [s, c]])


def _fill_border(border: np.ndarray, pose: np.ndarray, out: np.ndarray) -> float:
    """border (M, 4) world -> the nearest pieces in out (S, 4), ego frame; returns the metres within which all are."""
    gap = distances_to_segments(pose[:2], border)
    near = np.flatnonzero(gap <= BORDER_REACH)
    near = near[np.argsort(gap[near], kind="stable")]
    kept = border[near[: len(out)]]
    out[: len(kept)] = _to_ego(kept.reshape(-1, 2, 2), pose).reshape(-1, 4)
    return float(gap[near[len(out)]]) if len(near) > len(out) else BORDER_REACH


def _fill_crossings(
    rows: dict[str, np.ndarray], crossings: Crossings, mine: list[int], states: np.ndarray, pose: np.ndarray
) -> None:
    """Who is on a crosswalk of the route or about to be: where the route meets it, and the seconds it is taken.

    `mine`: places where the route meets crosswalks, that of the nearest lane first; it counts for whoever takes two.
    """
    who = rows["rules.object_tracks"]
    walkers = np.flatnonzero((who >= 0) & np.isin(rows[_PREFIX + "object_types"], WALKERS))
    out, now = rows[_PREFIX + "object_crossing"], states[who[walkers]]
    time = LOOK * np.arange(int(LONGEST / LOOK) + 1)
    places = now[:, None, :2] + time[:, None] * now[:, None, 3:5]  # (n, K, 2)
    for k in mine:
        inside = shapely.contains_xy(crossings.walks[crossings.walk[k]], places[..., 0], places[..., 1])
        taken = seconds_taken(inside)
        new = walkers[(taken > 0) & (out[walkers, 2] == 0)]
        out[new, :2] = _to_ego(crossings.entry[k], pose)
        out[new, 2] = taken[np.searchsorted(walkers, new)]


def seconds_taken(inside: np.ndarray) -> np.ndarray:
    """(n, K) whether somebody is on a crosswalk every 0.5 s from now on -> (n,) seconds until they have left it.

    0 where they do not reach it within 3 s.
    """
    first = inside.argmax(1)
    after = ~inside & (np.arange(inside.shape[1]) > first[:, None])
    left = np.where(after.any(1), after.argmax(1), inside.shape[1] - 1)
    soon = inside.any(1) & (first * LOOK <= SOON)
    return np.where(soon, LOOK * left, 0.0)
