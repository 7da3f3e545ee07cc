"""A whole city as one RoadMap, with what is broken in it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain

import numpy as np
import shapely

from radp.geometry.ragged import Polygons, Ragged
from radp.scenario import Areas, RoadMap
from radp.sources.nuplan.layers import Layer

DRIVABLE = ("road_segments", "generic_drivable_areas", "carpark_areas")  # beside the intersections
PARTS = ("polygon", "centre line", "left border", "right border")


@dataclass(frozen=True)
class Gap:
    """A piece of the map without a usable geometry: one sentence, and where it lies if anything tells."""

    reason: str
    place: shapely.Geometry | None = None


@dataclass
class LaneRow:
    """A lane or connector as the layers have it; `shapes` are polygon, centre line, left and right border."""

    key: str
    is_connector: bool
    shapes: list[shapely.Geometry | None]
    limit: float
    group: str | None
    index: float = np.nan  # smaller is further left
    stop_lines: list[str] = field(default_factory=list)

    @property
    def what(self) -> str:
        return f"{'connector' if self.is_connector else 'lane'} {self.key}"


def city_road(layers: dict[str, Layer], name: str) -> tuple[RoadMap, list[Gap]]:
    """Layers of a city -> its road, lanes first, then connectors in the order of their polygons; and its gaps.

    Pieces without geometry are left out of the road and named in the gaps.
    """
    gaps: list[Gap] = []
    rows = [row for row in chain(lane_rows(layers), connector_rows(layers)) if _is_whole(row, gaps)]
    numbers = {(row.is_connector, row.key): i for i, row in enumerate(rows)}
    ids = _unique([(row.key, row.is_connector) for row in rows])
    blocks, roadblock = _roadblocks(layers, rows, gaps)
    stop_lines = _areas([layers["stop_polygons"]] if "stop_polygons" in layers else [], gaps)
    before, behind = _links(layers["lane_connectors"], numbers, len(rows))
    left, right = _neighbours(rows)
    limits = np.array([row.limit for row in rows], dtype=np.float64)
    known = np.isfinite(limits) & (limits > 0)
    lines = [[_along(row, part) for row in rows] for part in (1, 2, 3)]
    road = RoadMap(
        lane_ids=ids,
        is_connector=np.array([row.is_connector for row in rows], dtype=bool),
        centerlines=Ragged.from_rows(lines[0], width=2),
        left=Ragged.from_rows(lines[1], width=2),
        right=Ragged.from_rows(lines[2], width=2),
        lane_polygons=Polygons.from_rings([rings_of(row.shapes[0]) for row in rows]),
        speed_limit=np.where(known, limits, 0.0),
        has_speed_limit=known,
        predecessors=Ragged.from_rows(before, dtype=np.int64),
        successors=Ragged.from_rows(behind, dtype=np.int64),
        left_neighbor=left,
        right_neighbor=right,
        roadblock=roadblock,
        lane_stop_lines=Ragged.from_rows(
            [[stop_lines.index[key] for key in row.stop_lines if key in stop_lines.index] for row in rows],
            dtype=np.int64,
        ),
        roadblocks=blocks,
        intersections=_areas([layers["intersections"]], gaps),
        drivable=_areas([layers[layer] for layer in DRIVABLE if layer in layers], gaps),
        stop_lines=stop_lines,
        crosswalks=_areas([layers["crosswalks"]] if "crosswalks" in layers else [], gaps),
        name=name,
    )
    return road, gaps


def lane_rows(layers: dict[str, Layer]) -> Iterator[LaneRow]:
    lanes = layers["lanes_polygons"]
    centre = _first_rows(layers["baseline_paths"].keys("lane_fid"))
    limits, index, groups = lanes.numbers("speed_limit_mps"), lanes.numbers("lane_index"), lanes.keys("lane_group_fid")
    borders = zip(lanes.keys("left_boundary_fid"), lanes.keys("right_boundary_fid"))
    for i, (key, sides) in enumerate(zip(lanes.ids, borders)):
        shapes = _shapes(layers, lanes.geometry[i], centre.get(key), sides)
        yield LaneRow(key, False, shapes, limits[i], groups[i], index[i])


def connector_rows(layers: dict[str, Layer]) -> Iterator[LaneRow]:
    """In the order of the polygon layer; a connector without a polygon is left out: no point is ever found in it."""
    areas, connectors = layers["gen_lane_connectors_scaled_width_polygons"], layers["lane_connectors"]
    centre = _first_rows(layers["baseline_paths"].keys("lane_connector_fid"))
    limits, groups = connectors.numbers("speed_limit_mps"), connectors.keys("lane_group_connector_fid")
    stop_lines = connectors.columns.get("traffic_light_stop_line_fids", np.full(len(connectors), None))
    borders = zip(areas.keys("left_boundary_fid"), areas.keys("right_boundary_fid"))
    seen: set[str] = set()
    for i, (key, sides) in enumerate(zip(areas.keys("lane_connector_fid"), borders)):
        if key is None or key in seen or key not in connectors.row:
            continue
        seen.add(key)
        row = connectors.row[key]
        shapes = _shapes(layers, areas.geometry[i], centre.get(key), sides)
        stops = [stop.strip() for stop in str(stop_lines[row] or "").split(",") if stop.strip()]
        yield LaneRow(key, True, shapes, limits[row], groups[row], stop_lines=stops)


def _shapes(
    layers: dict[str, Layer], area: shapely.Geometry | None, centre: int | None, sides: tuple[str | None, str | None]
) -> list[shapely.Geometry | None]:
    lines, borders = layers["baseline_paths"], layers["boundaries"]
    found = [None if side is None or side not in borders.row else borders.geometry[borders.row[side]] for side in sides]
    return [area, None if centre is None else lines.geometry[centre], *found]


def _first_rows(keys: list[str | None]) -> dict[str, int]:
    return {key: i for i, key in reversed(list(enumerate(keys))) if key is not None}


def _is_whole(row: LaneRow, gaps: list[Gap]) -> bool:
    usable = [_is_area(row.shapes[0]), *(_is_usable(shape) for shape in row.shapes[1:])]
    if all(usable) and row.group is not None:
        return True
    what = "roadblock" if all(usable) else PARTS[usable.index(False)]
    places = [shape for shape, fine in zip(row.shapes, usable) if fine]
    gaps.append(Gap(f"{row.what} has no usable {what}", places[0] if places else None))
    return False


def _is_usable(shape: shapely.Geometry | None) -> bool:
    if shape is None or shape.is_empty:
        return False
    points = shapely.get_coordinates(shape)
    return len(points) >= 2 and bool(np.isfinite(points).all())


def _is_area(shape: shapely.Geometry | None) -> bool:
    return _is_usable(shape) and bool(rings_of(shape))


def _along(row: LaneRow, part: int) -> np.ndarray:
    """(P, 2) a line of a lane in driving direction: borders are turned where they run against the centre line."""
    centre, line = shapely.get_coordinates(row.shapes[1]), shapely.get_coordinates(row.shapes[part])
    if part == 1:
        return line
    same = np.linalg.norm(line[0] - centre[0]) + np.linalg.norm(line[-1] - centre[-1])
    turned = np.linalg.norm(line[-1] - centre[0]) + np.linalg.norm(line[0] - centre[-1])
    return line if same <= turned else line[::-1]


def rings_of(shape: shapely.Geometry | None) -> list[np.ndarray]:
    """All rings of a polygon or several; a point is inside by the even-odd rule."""
    parts = [p for p in shapely.get_parts(shape) if p.geom_type == "Polygon"] if shape is not None else []
    return [shapely.get_coordinates(ring) for p in parts for ring in (p.exterior, *p.interiors)]


def _unique(keys: list[tuple[str, bool]]) -> tuple[str, ...]:
    """Ids are unique in their layer only: a connector with the number of a lane gets a letter behind it."""
    lanes = {key for key, is_connector in keys if not is_connector}
    return tuple(f"{key}c" if is_connector and key in lanes else key for key, is_connector in keys)


def _links(
    connectors: Layer, numbers: dict[tuple[bool, str], int], count: int
) -> tuple[list[list[int]], list[list[int]]]:
    """Predecessors and successors of every lane, in the order of the connector layer."""
    before: list[list[int]] = [[] for _ in range(count)]
    behind: list[list[int]] = [[] for _ in range(count)]
    for key, origin, target in zip(connectors.ids, connectors.keys("exit_lane_fid"), connectors.keys("entry_lane_fid")):
        connector = numbers.get((True, key))
        if connector is None:
            continue
        for lane, onto, back in ((origin, behind, before), (target, before, behind)):
            number = None if lane is None else numbers.get((False, lane))
            if number is not None:
                onto[number].append(connector)
                back[connector].append(number)
    return before, behind


def _neighbours(rows: list[LaneRow]) -> tuple[np.ndarray, np.ndarray]:
    """Lanes of the same roadblock whose index differs by one; connectors have none."""
    place = {(row.group, row.index): i for i, row in enumerate(rows) if not row.is_connector}
    sides = np.full((2, len(rows)), -1, dtype=np.int64)
    for (group, index), i in place.items():
        sides[0, i] = place.get((group, index - 1), -1)
        sides[1, i] = place.get((group, index + 1), -1)
    return sides[0], sides[1]


def _roadblocks(layers: dict[str, Layer], rows: list[LaneRow], gaps: list[Gap]) -> tuple[Areas, np.ndarray]:
    """Roadblocks that have lanes, with the area of their layer (the union of their lanes where that has none)."""
    names = list(dict.fromkeys((row.group or "", row.is_connector) for row in rows))
    number = {name: i for i, name in enumerate(names)}
    roadblock = np.array([number[row.group or "", row.is_connector] for row in rows], dtype=np.int64)
    members: list[list[shapely.Geometry | None]] = [[] for _ in names]
    for row, block in zip(rows, roadblock):
        members[block].append(row.shapes[0])
    shapes = []
    for i, (key, is_connector) in enumerate(names):
        layer = layers["lane_group_connectors" if is_connector else "lane_groups_polygons"]
        shape = layer.geometry[layer.row[key]] if key in layer.row else None
        if key in layer.row and not _is_area(shape):
            gaps.append(Gap(f"roadblock {key} has no usable polygon", members[i][0]))
        shapes.append(shape if _is_area(shape) else shapely.union_all(shapely.make_valid(np.array(members[i]))))
    return Areas(_unique(names), Polygons.from_rings([rings_of(shape) for shape in shapes])), roadblock


def _areas(layers: list[Layer], gaps: list[Gap]) -> Areas:
    """The polygons of layers side by side."""
    ids, rings = [], []
    for layer in layers:
        for key, shape in zip(layer.ids, layer.geometry):
            if _is_area(shape):
                ids.append(key)
                rings.append(rings_of(shape))
            else:
                gaps.append(Gap(f"row {key} of {layer.name} has no usable polygon"))
    return Areas(tuple(ids), Polygons.from_rings(rings))
