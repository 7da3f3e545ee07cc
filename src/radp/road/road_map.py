"""The road: lanes and connectors with their graph, and the areas around them."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

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
        pairs = zip(_area_arrays(self.lane_polygons), _area_arrays(_strips(self.left, self.right)))
        same = all(a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes() for a, b in pairs)
        return {"lane_polygons": None} if same else {}

    @staticmethod
    def whole(values: dict[str, Any]) -> dict[str, Any]:
        """The inverse of `compact`."""
        if values["lane_polygons"] is None:
            values["lane_polygons"] = _strips(values["left"], values["right"])
        return values

    def validate(self) -> None:
        """Raise ValueError naming the field, the lane and the bad value."""
        count = len(self)
        for field in (
            "is_connector",
            "speed_limit",
            "has_speed_limit",
            "left_neighbor",
            "right_neighbor",
            "roadblock",
            "centerlines",
            "left",
            "right",
            "lane_polygons",
            "predecessors",
            "successors",
            "lane_stop_lines",
        ):
            if len(getattr(self, field)) != count:
                raise ValueError(f"map {self.name!r}: {field} has {len(getattr(self, field))} rows for {count} lanes")
        for field, lines in (("centerline", self.centerlines), ("left", self.left), ("right", self.right)):
            if not np.isfinite(lines.values).all():
                lane = int(np.searchsorted(lines.offsets, np.argwhere(~np.isfinite(lines.values))[0, 0], "right")) - 1
                raise ValueError(
                    f"map {self.name!r}: lane {self.lane_ids[lane]!r} has a {field} point that is not finite"
                )
            short = np.flatnonzero(np.diff(lines.offsets) < 2)
            if len(short):
                raise ValueError(
                    f"map {self.name!r}: lane {self.lane_ids[short[0]]!r} has a {field} of fewer than 2 points"
                )
        if len(set(self.lane_ids)) != count:
            raise ValueError(f"map {self.name!r}: lane ids are not unique")
        for field, rows, upper in (
            ("predecessors", self.predecessors.values, count),
            ("successors", self.successors.values, count),
            ("roadblock", self.roadblock, len(self.roadblocks)),
            ("lane_stop_lines", self.lane_stop_lines.values, len(self.stop_lines)),
        ):
            if len(rows) and (rows.min() < 0 or rows.max() >= upper):
                raise ValueError(f"map {self.name!r}: {field} points to {int(rows.max())}, expected 0..{upper - 1}")


def _strips(left: Ragged, right: Ragged) -> Polygons:
    """Areas between borders: left border, then the right one backwards."""
    return Polygons.from_exteriors([np.concatenate((a, b[::-1])) for a, b in zip(left, right)])


def _area_arrays(areas: Polygons) -> tuple[np.ndarray, ...]:
    return areas.offsets, areas.rings.offsets, areas.rings.values
