"""The part of a city's road that a scenario needs, found with spatial indices and cut out of the flat arrays."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

import numpy as np
import shapely

from radp.geometry.ragged import Polygons, Ragged
from radp.scenario import Areas, RoadMap
from radp.sources.convert import SourceError
from radp.sources.nuplan.layers import read_layers
from radp.sources.nuplan.road import Gap, city_road

RADIUS = 300.0  # m around the path of the expert: 200 m that the ego may stray, 100 m that it sees
PATH_STEP = 10  # frames between the points of a path that are looked at
CUTS_KEPT = 16
AREAS = ("intersections", "drivable", "stop_lines", "crosswalks")


class City:
    """The whole road of a city with its indices; scenarios that need the same part share one RoadMap."""

    def __init__(self, road: RoadMap, gaps: Iterable[Gap] = ()) -> None:
        self.road, self.gaps = road, tuple(gaps)
        self._lanes = _tree(road.lane_polygons)
        self._areas = {name: _tree(getattr(road, name).polygons) for name in AREAS}
        self._cuts: OrderedDict[bytes, RoadMap] = OrderedDict()

    def around(self, path: np.ndarray, route: Iterable[str], radius: float = RADIUS) -> RoadMap:
        """Lanes and areas within `radius` of path (P, 2), those of the route, and the lanes that connectors join.

        SourceError if a piece of the map that lies there, or whose place nothing tells, has no geometry.
        """
        zone = shapely.MultiPoint(np.concatenate((path[::PATH_STEP], path[-1:])))
        for gap in self.gaps:
            if gap.place is None or shapely.dwithin(gap.place, zone, radius):
                raise SourceError(f"map {self.road.name}: {gap.reason}")
        lanes = self._with_joined(np.union1d(_near(self._lanes, zone, radius), self._on_route(route)))
        areas = {name: np.unique(_near(tree, zone, radius)) for name, tree in self._areas.items()}
        used = take_rows(self.road.lane_stop_lines, lanes).values
        areas["stop_lines"] = np.union1d(areas["stop_lines"], used)
        key = b"|".join(rows.tobytes() for rows in (lanes, *areas.values()))
        if key not in self._cuts:
            self._cuts[key] = cut_road(self.road, lanes, areas)
            if len(self._cuts) > CUTS_KEPT:
                self._cuts.popitem(last=False)
        self._cuts.move_to_end(key)
        return self._cuts[key]

    def _on_route(self, route: Iterable[str]) -> np.ndarray:
        blocks = self.road.roadblocks.index
        rows = [self.road.lanes_of_roadblock[blocks[block]] for block in route if block in blocks]
        return np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64)

    def _with_joined(self, lanes: np.ndarray) -> np.ndarray:
        connectors = lanes[self.road.is_connector[lanes]]
        ends = [take_rows(links, connectors).values for links in (self.road.predecessors, self.road.successors)]
        return np.unique(np.concatenate((lanes, *ends)))


@lru_cache(maxsize=4)
def _open_city(path: Path, name: str) -> City | SourceError:
    """A city or the reason why there is none: either is worth remembering."""
    try:
        road, gaps = city_road(read_layers(path), name)
        return City(road, gaps)
    except SourceError as error:
        text = str(error)
        return SourceError(text if str(path) in text else f"{path}: {text}")


def open_city(path: Path, name: str) -> City:
    """The city in a map file, read once in each process."""
    found = _open_city(path, name)
    if isinstance(found, SourceError):
        raise SourceError(str(found))
    return found


def _tree(polygons: Polygons) -> shapely.STRtree:
    """Over the outer rings: holes and parts are too fine for the choice of what is near."""
    rings = polygons.rings
    outer = [shapely.MultiPoint(rings.values[:0]) for _ in range(len(polygons))]
    for i in range(len(polygons)):
        points = rings.values[rings.offsets[polygons.offsets[i]] : rings.offsets[polygons.offsets[i + 1]]]
        outer[i] = shapely.box(*points.min(0), *points.max(0)) if len(points) else outer[i]
    return shapely.STRtree(outer)


def _near(tree: shapely.STRtree, zone: shapely.Geometry, radius: float) -> np.ndarray:
    return tree.query(zone, predicate="dwithin", distance=radius).astype(np.int64)


def take_rows(ragged: Ragged, rows: np.ndarray) -> Ragged:
    """Some rows, in the order given."""
    lengths = np.diff(ragged.offsets)[rows]
    offsets = np.concatenate(([0], np.cumsum(lengths)))
    index = np.arange(offsets[-1]) + np.repeat(ragged.offsets[rows] - offsets[:-1], lengths)
    return Ragged(np.ascontiguousarray(ragged.values[index]), offsets)


def take_polygons(polygons: Polygons, rows: np.ndarray) -> Polygons:
    rings = take_rows(Ragged(np.arange(len(polygons.rings)), polygons.offsets), rows)
    return Polygons(take_rows(polygons.rings, rings.values), rings.offsets)


def take_areas(areas: Areas, rows: np.ndarray) -> Areas:
    return Areas(tuple(areas.ids[i] for i in rows), take_polygons(areas.polygons, rows))


def _renumbered(links: Ragged, rows: np.ndarray, chosen: np.ndarray, count: int) -> Ragged:
    """Rows of links whose targets are numbered anew; links to what is not `chosen` are dropped."""
    number = np.full(count, -1, dtype=np.int64)
    number[chosen] = np.arange(len(chosen))
    taken = take_rows(links, rows)
    values = number[taken.values]
    kept = np.concatenate(([0], np.cumsum(values >= 0)))
    return Ragged(np.ascontiguousarray(values[values >= 0]), kept[taken.offsets])


def cut_road(road: RoadMap, lanes: np.ndarray, areas: dict[str, np.ndarray]) -> RoadMap:
    """The lanes and areas of a road by their (increasing) numbers, with the roadblocks of these lanes."""
    number = np.full(len(road) + 1, -1, dtype=np.int64)  # the last entry stands for "none", -1
    number[lanes] = np.arange(len(lanes))
    blocks, roadblock = np.unique(road.roadblock[lanes], return_inverse=True)
    return RoadMap(
        lane_ids=tuple(road.lane_ids[i] for i in lanes),
        is_connector=road.is_connector[lanes],
        centerlines=take_rows(road.centerlines, lanes),
        left=take_rows(road.left, lanes),
        right=take_rows(road.right, lanes),
        lane_polygons=take_polygons(road.lane_polygons, lanes),
        speed_limit=road.speed_limit[lanes],
        has_speed_limit=road.has_speed_limit[lanes],
        predecessors=_renumbered(road.predecessors, lanes, lanes, len(road)),
        successors=_renumbered(road.successors, lanes, lanes, len(road)),
        left_neighbor=number[road.left_neighbor[lanes]],
        right_neighbor=number[road.right_neighbor[lanes]],
        roadblock=roadblock.astype(np.int64).reshape(-1),
        lane_stop_lines=_renumbered(road.lane_stop_lines, lanes, areas["stop_lines"], len(road.stop_lines)),
        roadblocks=take_areas(road.roadblocks, blocks),
        name=road.name,
        **{name: take_areas(getattr(road, name), areas[name]) for name in AREAS},
    )
