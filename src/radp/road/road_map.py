"""The road: lanes and connectors with their graph, and the areas around them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain
from typing import Any

import numpy as np

from radp.geometry.limits import LONGEST_LANE, LONGEST_ROAD, MOST, REACH, array_fault, index_fault, size_fault
from radp.geometry.ragged import Polygons, Ragged


@dataclass(frozen=True)
class Areas:
    """N named areas: ids (N,), polygons N."""

    ids: tuple[str, ...]
    polygons: Polygons

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def index(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.ids)}


LINES = ("centerlines", "left", "right")
AREAS = ("roadblocks", "intersections", "drivable", "stop_lines", "crosswalks")
ARRAYS = {
    "is_connector": np.bool_,
    "speed_limit": np.float64,
    "has_speed_limit": np.bool_,
    "left_neighbor": np.int64,
    "right_neighbor": np.int64,
    "roadblock": np.int64,
}
NO_AREAS = Areas((), Polygons.from_exteriors([]))


@dataclass(frozen=True)
class RoadMap:
    """L lanes and connectors, world frame, metres, driving direction; R roadblocks.

    Order matters: where several connectors contain a point, metrics take them in this order.
    Index fields hold positions in the lane list; -1 means none.
    """

    lane_ids: tuple[str, ...]
    is_connector: np.ndarray  # (L,) bool
    centerlines: Ragged  # L rows (P, 2)
    left: Ragged  # L rows (P, 2), left border
    right: Ragged  # L rows (P, 2), right border
    lane_polygons: Polygons  # L areas
    speed_limit: np.ndarray  # (L,) m/s, 0 where has_speed_limit is False
    has_speed_limit: np.ndarray  # (L,) bool
    predecessors: Ragged  # L rows of lane indices
    successors: Ragged  # L rows of lane indices
    left_neighbor: np.ndarray  # (L,) lane index or -1
    right_neighbor: np.ndarray  # (L,) lane index or -1
    roadblock: np.ndarray  # (L,) index into roadblocks
    lane_stop_lines: Ragged  # L rows of indices into stop_lines; nonempty = the connector has traffic lights
    roadblocks: Areas
    intersections: Areas
    drivable: Areas  # drivable areas beside the intersections
    stop_lines: Areas
    crosswalks: Areas
    name: str = ""

    def __len__(self) -> int:
        return len(self.lane_ids)

    @cached_property
    def lane_index(self) -> dict[str, int]:
        """Lane or connector id -> position. Ids are unique over lanes and connectors together."""
        return {name: i for i, name in enumerate(self.lane_ids)}

    @cached_property
    def lanes_of_roadblock(self) -> Ragged:
        """R rows of lane indices."""
        block = self.roadblock.astype(np.int64)
        counts = np.bincount(block, minlength=len(self.roadblocks))
        return Ragged(np.argsort(block, kind="stable"), np.concatenate(([0], np.cumsum(counts))))

    @cached_property
    def roadblock_successors(self) -> Ragged:
        """R rows of roadblock indices: blocks that some lane of the block leads into."""
        return self._roadblock_links(self.successors)

    @cached_property
    def roadblock_predecessors(self) -> Ragged:
        """R rows of roadblock indices: blocks that lead into some lane of the block."""
        return self._roadblock_links(self.predecessors)

    def _roadblock_links(self, links: Ragged) -> Ragged:
        rows: list[dict[int, None]] = [{} for _ in self.roadblocks.ids]
        for lane, block in enumerate(self.roadblock):
            for other in self.roadblock[links[lane]]:
                if other != block:
                    rows[block][int(other)] = None
        return Ragged.from_rows([list(row) for row in rows], dtype=np.int64)

    def compact(self) -> dict[str, Any]:
        """For storing: lane areas that are the left border and the reversed right border are left out."""
        try:
            pairs = zip(_area_arrays(self.lane_polygons), _area_arrays(strips(self.left, self.right)))
        except (ValueError, IndexError):  # borders that are none have no areas
            return {}
        same = all(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)
        return {"lane_polygons": None} if same else {}

    @staticmethod
    def whole(values: dict[str, Any]) -> dict[str, Any]:
        """The inverse of `compact`."""
        if values["lane_polygons"] is None:
            values["lane_polygons"] = strips(values["left"], values["right"])
        return values

    def validate(self) -> None:
        """Raise ValueError naming the field, the lane and the bad value."""
        who, count = f"map {self.name!r}", len(self)
        if len(set(self.lane_ids)) != count:
            raise ValueError(f"{who}: lane ids are not unique")
        for name, fault in chain(self._array_faults(count), self._area_faults(count)):
            if fault:
                raise ValueError(f"{who}: {name} {fault}")
        for name in LINES:
            self._check_lines(name, getattr(self, name))
        if (self.speed_limit[self.has_speed_limit] <= 0).any():
            lane = self.lane_ids[int(np.argmax(self.has_speed_limit & (self.speed_limit <= 0)))]
            raise ValueError(
                f"{who}: lane {lane!r} has a speed limit that is not positive; unknown ones need no number"
            )
        for side in ("left_neighbor", "right_neighbor"):
            if _goes_round(getattr(self, side)):
                raise ValueError(f"{who}: {side} leads round in a circle")

    def _array_faults(self, count: int) -> Iterator[tuple[str, str]]:
        """Of what has one value or row for each lane; an iterator, since values are looked at after types."""
        blocks, stops = len(self.roadblocks), len(self.stop_lines)
        for name, dtype in ARRAYS.items():
            array = getattr(self, name)
            short = isinstance(array, np.ndarray) and array.ndim == 1 and len(array) != count
            yield name, f"has {len(array)} rows for {count} lanes" if short else array_fault(array, dtype, (count,))
        yield "speed_limit", size_fault(self.speed_limit, MOST, least=0.0)
        yield "left_neighbor", index_fault(self.left_neighbor, count, none=True)
        yield "right_neighbor", index_fault(self.right_neighbor, count, none=True)
        yield "roadblock", index_fault(self.roadblock, blocks)
        links = {"predecessors": count, "successors": count, "lane_stop_lines": stops}
        for name, upper in links.items():
            rows: Ragged = getattr(self, name)
            yield name, rows.fault(np.int64) or _rows_fault(rows, count) or index_fault(rows.values, upper)
        for name in LINES:
            rows = getattr(self, name)
            yield name, rows.fault(np.float64, 2) or _rows_fault(rows, count)

    def _area_faults(self, count: int) -> Iterator[tuple[str, str]]:
        yield "lane_polygons", self.lane_polygons.fault() or _rows_fault(self.lane_polygons, count)
        for name in AREAS:
            areas: Areas = getattr(self, name)
            uneven = f"has {len(areas.ids)} ids for {len(areas.polygons)} areas"
            yield name, areas.polygons.fault() or (uneven if len(areas.ids) != len(areas.polygons) else "")

    def _check_lines(self, name: str, lines: Ragged) -> None:
        """Points, lengths and numbers of points of lanes; the lane at fault is named."""
        counts, points, faults = np.diff(lines.offsets), lines.values, {}
        what = name.removesuffix("s")
        if fault := size_fault(points, REACH):
            wrong = ~((np.abs(points) <= REACH).all(1))
            lane = int(np.searchsorted(lines.offsets, np.argmax(wrong), "right")) - 1
            faults[lane] = f"a {what} point that is not finite" if "finite" in fault else f"a {what} that {fault}"
        elif (counts < 2).any():
            faults[int(np.argmax(counts < 2))] = f"a {what} of fewer than 2 points"
        elif len(counts):
            step = np.abs(points[1:] - points[:-1])
            length = step[:, 0] + step[:, 1]  # as a taxi goes, which is quick to compute
            length[lines.offsets[1:-1] - 1] = 0.0  # from the end of a lane to the next one
            total = np.add.reduceat(length, lines.offsets[:-1])
            if total.max() > LONGEST_LANE:
                faults[int(total.argmax())] = f"a {what} of {total.max():.6g} m, expected at most {LONGEST_LANE:g} m"
            elif total.sum() > LONGEST_ROAD:
                raise ValueError(f"map {self.name!r}: its lanes are {total.sum():.6g} m, more than {LONGEST_ROAD:g} m")
        for lane, fault in faults.items():
            raise ValueError(f"map {self.name!r}: lane {self.lane_ids[lane]!r} has {fault}")


def _rows_fault(rows: Ragged | Polygons, count: int) -> str:
    return "" if len(rows) == count else f"has {len(rows)} rows for {count} lanes"


def _goes_round(neighbor: np.ndarray) -> bool:
    """Whether somebody comes back to itself, neighbour by neighbour (-1: none); each turn doubles the stride."""
    there = neighbor
    for _ in range(len(neighbor).bit_length()):
        if (there < 0).all():
            return False
        there = np.where(there < 0, -1, there[there])
    return bool((there >= 0).any())


def _no_road() -> RoadMap:
    lines, links, nothing = Ragged.from_rows([], width=2), Ragged.from_rows([], dtype=np.int64), np.zeros(0, np.int64)
    return RoadMap(
        lane_ids=(), is_connector=np.zeros(0, bool), centerlines=lines, left=lines, right=lines,
        lane_polygons=Polygons.from_exteriors([]), speed_limit=np.zeros(0), has_speed_limit=np.zeros(0, bool),
        predecessors=links, successors=links, left_neighbor=nothing, right_neighbor=nothing, roadblock=nothing,
        lane_stop_lines=links, roadblocks=NO_AREAS, intersections=NO_AREAS, drivable=NO_AREAS, stop_lines=NO_AREAS,
        crosswalks=NO_AREAS,
    )  # fmt: skip


NO_ROAD = _no_road()  # of logs that come without a map


def strips(left: Ragged, right: Ragged) -> Polygons:
    """Areas between borders: left border, then the right one backwards; as `Polygons.from_exteriors`, all at once."""
    a, b = np.diff(left.offsets), np.diff(right.offsets)
    ends = np.cumsum(a + b)
    starts = ends - a - b
    points = np.empty((len(left.values) + len(right.values), 2))
    points[np.arange(len(left.values)) + np.repeat(starts - left.offsets[:-1], a)] = left.values
    points[np.repeat(ends - 1 + right.offsets[:-1], b) - np.arange(len(right.values))] = right.values
    several = np.flatnonzero(a + b > 1)
    closed = several[(points[starts[several]] == points[ends[several] - 1]).all(1)]
    sizes, kept = a + b, np.ones(len(points), dtype=bool)
    sizes[closed] -= 1
    kept[ends[closed] - 1] = False
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return Polygons(Ragged(points[kept], offsets), np.arange(len(a) + 1, dtype=np.int64))


def _area_arrays(areas: Polygons) -> tuple[np.ndarray, ...]:
    return areas.offsets, areas.rings.offsets, areas.rings.values
