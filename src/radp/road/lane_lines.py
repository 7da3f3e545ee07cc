"""The lanes as lines of three, centre, left and right border, in step with each other and in driving direction."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from radp.geometry.areas import AreaArrays, area_arrays
from radp.geometry.compiled import kernel_array
from radp.geometry.kernels import project_on_line, wrap_angle
from radp.geometry.ragged import Polygons, Ragged
from radp.geometry.resample import cut_line, line_lengths, resample_lines
from radp.road.arrays import LaneGraph, LineArrays, road_arrays
from radp.road.map_memory import remember
from radp.road.road_map import RoadMap

LANE_POINTS = 20  # points of a row of a table, and of a line at least
LINE_SPACING = 2.0  # m between the points of a line, at most

Lines = tuple[Ragged, Ragged, Ragged]  # centre, left, right


class LaneLines(NamedTuple):
    """L lines for driving along; line i is points[offsets[i]:offsets[i+1]]."""

    points: np.ndarray  # (V, 6) centre, left and right border, at most 2 m apart
    offsets: np.ndarray  # (L+1,)
    length: np.ndarray  # (L,) m of the centre lines as they stand in the map


class LaneTable(NamedTuple):
    """N rows that a scene chooses from: the lanes of a map, or their parts; world frame, metres, float64."""

    lines: np.ndarray  # (N, 20, 6) centre, left and right border, each even in arc length
    centre: LineArrays  # (V, 2) points of the centre lines as they stand in the map
    areas: AreaArrays  # N
    lane: np.ndarray  # (N,) lane of the map that a row is, or is a part of
    is_connector: np.ndarray  # (N,) bool
    roadblock: np.ndarray  # (N,)
    limit: np.ndarray  # (N,) m/s, 0 where there is none
    has_limit: np.ndarray  # (N,) bool


def lane_lines(road_map: RoadMap) -> LaneLines:
    """The lines of a map, made once."""
    return remember(road_map, "lines", lambda: _lane_lines(road_map))


def _lane_lines(road_map: RoadMap) -> LaneLines:
    length = line_lengths(road_map.centerlines.values, road_map.centerlines.offsets)
    counts = np.maximum(LANE_POINTS, np.ceil(length / LINE_SPACING).astype(np.int64) + 1)
    return LaneLines(*_resampled(_lines_of_map(road_map), counts), length)


def lane_table(road_map: RoadMap, lane_length: float | None = None) -> LaneTable:
    """The table of a map; lanes longer than `lane_length` metres are cut into equal parts. Made once."""
    return remember(road_map, ("table", lane_length), lambda: _lane_table(road_map, lane_length))


def _lane_table(road_map: RoadMap, lane_length: float | None) -> LaneTable:
    graph, lines, areas = road_arrays(road_map).graph, _lines_of_map(road_map), road_map.lane_polygons
    parts = np.ones(len(road_map), np.int64)
    if lane_length is not None:
        length = line_lengths(lines[0].values, lines[0].offsets)
        parts = np.maximum(1, np.ceil(length / lane_length)).astype(np.int64)
        lines, areas = _cut(lines, areas, parts)
    lane = np.repeat(np.arange(len(parts)), parts)
    return LaneTable(
        lines=_resampled(lines, np.full(len(lane), LANE_POINTS)).points.reshape(-1, LANE_POINTS, 6),
        centre=LineArrays(lines[0].values, lines[0].offsets),
        areas=area_arrays(areas),
        lane=lane,
        is_connector=graph.is_connector[lane],
        roadblock=graph.roadblock[lane],
        limit=graph.limit[lane],
        has_limit=graph.has_limit[lane],
    )


def _lines_of_map(road_map: RoadMap) -> Lines:
    """Centre lines and borders; a border is turned if its last point is nearer to the centre's begin than its first."""
    centre = Ragged(kernel_array(road_map.centerlines.values), kernel_array(road_map.centerlines.offsets, np.int64))
    return centre, _along(road_map.left, centre), _along(road_map.right, centre)


def _along(borders: Ragged, centre: Ragged) -> Ragged:
    rows = []
    for border, line in zip(borders, centre):
        turned = math.dist(border[-1], line[0]) < math.dist(border[0], line[0])
        rows.append(border[::-1] if turned else border)
    return Ragged.from_rows(rows, width=2)


def _resampled(lines: Lines, counts: np.ndarray) -> LineArrays:
    """N lines (V, 6), line i of counts[i] points even in arc length."""
    offsets = np.concatenate(([0], np.cumsum(counts)))
    out = np.empty((3, offsets[-1], 2))
    for line, side in zip(lines, out):
        resample_lines(line.values, line.offsets, side, offsets)
    return LineArrays(np.concatenate(out, 1), offsets)


def _cut(lines: Lines, areas: Polygons, parts: np.ndarray) -> tuple[Lines, Polygons]:
    """Lane i in parts[i] parts; its three lines are cut at the same fractions of their lengths."""
    rows: list[list[np.ndarray]] = [[], [], []]
    rings: list[list[np.ndarray]] = []
    for lane, count in enumerate(parts):
        for part in range(count):
            for line, out in zip(lines, rows):
                whole = line[lane]
                out.append(whole if count == 1 else cut_line(whole, part / count, (part + 1) / count))
            between = [np.concatenate((rows[1][-1], rows[2][-1][::-1]))]
            rings.append(areas[lane] if count == 1 else between)
    cut = tuple(Ragged.from_rows(out, width=2) for out in rows)
    return (cut[0], cut[1], cut[2]), Polygons.from_rings(rings)


@njit(cache=True, nogil=True)
def lane_line(lines: LaneLines, lane: int) -> np.ndarray:
    """(n, 6) centre, left, right of a lane."""
    return lines.points[lines.offsets[lane] : lines.offsets[lane + 1]]


@njit(cache=True, nogil=True)
def project_on_lane(lines: LaneLines, lane: int, pose: np.ndarray) -> float:
    """Arc length of the point of a lane's centre that is nearest to a pose."""
    return project_on_line(pose[0], pose[1], lines.points, lines.offsets[lane], lines.offsets[lane + 1])


@njit(cache=True, nogil=True)
def end_heading(lines: LaneLines, lane: int) -> float:
    """Direction in which a lane ends."""
    line = lane_line(lines, lane)
    return math.atan2(line[-1, 1] - line[-2, 1], line[-1, 0] - line[-2, 0])


@njit(cache=True, nogil=True)
def straight_on(graph: LaneGraph, lines: LaneLines, lane: int) -> int:
    """The successor that turns least until its end, the first among equals; -1 where the map ends."""
    best, least = -1, np.inf
    for k in range(graph.successor_offsets[lane], graph.successor_offsets[lane + 1]):
        turn = abs(wrap_angle(end_heading(lines, graph.successors[k]) - end_heading(lines, lane)))
        if turn < least:
            best, least = graph.successors[k], turn
    return best
