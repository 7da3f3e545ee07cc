"""A road map from a draft: what is known is taken, what is missing is rebuilt, and both are said."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import shapely
from scipy.spatial import cKDTree

from radp.geometry.lines import arc_length, resample, tangents
from radp.geometry.ragged import Polygons, Ragged
from radp.road.roadblocks import union_of_members
from radp.scenario import NO_AREAS, Areas, RoadMap
from radp.sources.limits import MOST_MEETINGS
from radp.sources.roads.borders import SPACING, Sides, borders_of, look_aside, neighbors_by_sight, surface_of
from radp.sources.roads.draft import LaneDraft, RoadDraft
from radp.sources.roads.links import inverse, successors_by_ends

LONGEST_CONNECTOR = 80.0  # m
SAME_POINT = 0.5  # m between the ends of lanes that part or meet
STOP_DEPTH = 1.0  # m
SMOOTH = 0.05  # m of detail that is given up in rebuilt areas


@dataclass(frozen=True)
class BuiltRoad:
    """A road map, and the words for what was rebuilt and what stays unknown."""

    map: RoadMap
    rebuilt: tuple[str, ...]
    unknown: tuple[str, ...]


def build_road(draft: RoadDraft) -> BuiltRoad:
    """Lay out all lanes of a draft. ValueError without any lane."""
    lanes = draft.lanes
    if not lanes:
        raise ValueError("the map has no lane for vehicles")
    rebuilt: list[str] = []
    unknown: list[str] = []
    centers = [lane.center for lane in lanes]
    sides = look_aside(centers, draft.lines, draft.edges)
    triples = [_lay_out(lane, sides, i) for i, lane in enumerate(lanes)]
    if any(lane.left is None for lane in lanes):
        rebuilt.append("lane borders")
    successors = _successors(lanes, centers, rebuilt)
    connector = _connectors(lanes, centers, rebuilt)
    left_neighbor, right_neighbor = _neighbors(draft, sides, connector, rebuilt)
    roadblock, count = _roadblocks(left_neighbor, connector, successors)
    rings = [np.concatenate((left, right[::-1])) for _, left, right in triples]
    limits = [lane.speed_limit for lane in lanes]
    if not any(limits):
        unknown.append("speed limits")
    block_areas = union_of_members(rings, roadblock, count)
    stop_lines, lane_stops = _stop_lines(draft, triples)
    road_map = RoadMap(
        lane_ids=tuple(lane.id for lane in lanes),
        is_connector=connector,
        centerlines=Ragged.from_rows([center for center, _, _ in triples], width=2),
        left=Ragged.from_rows([left for _, left, _ in triples], width=2),
        right=Ragged.from_rows([right for _, _, right in triples], width=2),
        lane_polygons=Polygons.from_exteriors(rings),
        speed_limit=np.array([limit or 0.0 for limit in limits]),
        has_speed_limit=np.array([bool(limit) for limit in limits]),
        predecessors=Ragged.from_rows(inverse(successors), dtype=np.int64),
        successors=Ragged.from_rows(successors, dtype=np.int64),
        left_neighbor=left_neighbor,
        right_neighbor=right_neighbor,
        roadblock=roadblock,
        lane_stop_lines=lane_stops,
        roadblocks=Areas(tuple(f"block-{i}" for i in range(count)), block_areas),
        intersections=_intersections(rings, centers, connector),
        drivable=_drivable(draft, sides, triples, rings, rebuilt, unknown),
        stop_lines=stop_lines,
        crosswalks=_areas("crosswalk", draft.crosswalks),
        name=draft.name,
    )
    return BuiltRoad(road_map, tuple(rebuilt), tuple(unknown))


Triple = tuple[np.ndarray, np.ndarray, np.ndarray]


def _lay_out(lane: LaneDraft, sides: Sides, index: int) -> Triple:
    """Centre, left and right border, each (P, 2)."""
    if lane.left is not None and lane.right is not None:
        longest = max(arc_length(line)[-1] for line in (lane.center, lane.left, lane.right))
        count = max(2, round(longest / SPACING) + 1)
        center, left, right = (resample(line, SPACING, count) for line in (lane.center, lane.left, lane.right))
        return (center, left, right) if _is_left(center, left) else (center, right, left)
    return borders_of(sides, index)


def _is_left(center: np.ndarray, border: np.ndarray) -> bool:
    """Whether a border lies to the left of most of its lane; some sources name a few the wrong way round."""
    along, aside = tangents(center), border - center
    return bool((along[:, 0] * aside[:, 1] - along[:, 1] * aside[:, 0] > 0).mean() >= 0.5)


def _successors(lanes: Sequence[LaneDraft], centers: Sequence[np.ndarray], rebuilt: list[str]) -> list[list[int]]:
    if any(lane.successors is not None for lane in lanes):
        index = {lane.id: i for i, lane in enumerate(lanes)}
        return [[index[name] for name in lane.successors or () if name in index] for lane in lanes]
    rebuilt.append("lane successors")
    return successors_by_ends(centers)


def _connectors(lanes: Sequence[LaneDraft], centers: Sequence[np.ndarray], rebuilt: list[str]) -> np.ndarray:
    """(L,) bool. Rebuilt: lanes that part, meet or cross others within a junction."""
    if any(lane.connector is not None for lane in lanes):
        return np.array([bool(lane.connector) for lane in lanes])
    rebuilt.append("connectors")
    out = np.zeros(len(lanes), dtype=bool)
    shapes = [shapely.LineString(center) for center in centers]
    one, other = _crossing(shapes)
    out[one[one != other]] = True
    for ends in ([c[0] for c in centers], [c[-1] for c in centers]):
        near = cKDTree(ends).query_ball_point(ends, SAME_POINT, return_length=True)
        out[np.asarray(near) > 1] = True
    return out & (np.array([arc_length(c)[-1] for c in centers]) <= LONGEST_CONNECTOR)


def _neighbors(
    draft: RoadDraft, sides: Sides, connector: np.ndarray, rebuilt: list[str]
) -> tuple[np.ndarray, np.ndarray]:
    """Left and right neighbour (L,) of each lane; connectors have none."""
    if not draft.knows_neighbors:
        rebuilt.append("lane neighbours")
        return neighbors_by_sight(sides, ~connector)
    index = {lane.id: i for i, lane in enumerate(draft.lanes)}
    out = np.full((2, len(draft.lanes)), -1, dtype=np.int64)
    for i, lane in enumerate(draft.lanes):
        for side, name in enumerate((lane.left_neighbor, lane.right_neighbor)):
            other = index.get(name, -1) if name is not None else -1
            if other >= 0 and not connector[i] and not connector[other]:
                out[side, i] = other
    for i in range(len(draft.lanes)):  # both must know each other
        for side in range(2):
            if out[side, i] >= 0 and out[1 - side, out[side, i]] != i:
                out[side, i] = -1
    return out[0], out[1]


def _roadblocks(left: np.ndarray, connector: np.ndarray, successors: Sequence[Sequence[int]]) -> tuple[np.ndarray, int]:
    """Roadblock (L,) of each lane, and their number: lanes side by side; connectors between the same two blocks."""
    group = np.arange(len(left))
    for lane in range(len(left)):
        if left[lane] >= 0:
            group[group == group[lane]] = group[left[lane]]
    for lane, after in enumerate(successors):  # a chain of neighbours must not hold a lane and its successor
        if any(group[other] == group[lane] for other in after):
            members = np.flatnonzero(group == group[lane])
            group[members] = members
    before = inverse(successors)
    named: dict[tuple[int, int], int] = {}
    for lane in np.flatnonzero(connector).tolist():
        ends = [{int(group[o]) for o in row if not connector[o]} for row in (before[lane], successors[lane])]
        if all(len(end) == 1 for end in ends):
            group[lane] = named.setdefault((ends[0].pop(), ends[1].pop()), lane)
    _, block = np.unique(group, return_inverse=True)
    return block.astype(np.int64), int(block.max()) + 1


def _stop_lines(draft: RoadDraft, triples: Sequence[Triple]) -> tuple[Areas, Ragged]:
    """A stop line across each lane whose light is known, at the place where the light holds."""
    index = {lane.id: i for i, lane in enumerate(draft.lanes)}
    rows: list[list[int]] = [[] for _ in draft.lanes]
    rings: list[np.ndarray] = []
    for name in draft.stops:
        if name not in index:
            continue
        lane = index[name]
        center, left, right = triples[lane]
        ahead = (center[1] - center[0]) / max(float(np.hypot(*(center[1] - center[0]))), 1e-9)
        rows[lane].append(len(rings))
        rings.append(np.array([left[0], right[0], right[0] - STOP_DEPTH * ahead, left[0] - STOP_DEPTH * ahead]))
    return _areas("stop", rings), Ragged.from_rows(rows, dtype=np.int64)


def _intersections(rings: Sequence[np.ndarray], centers: Sequence[np.ndarray], connector: np.ndarray) -> Areas:
    """Connectors that cross each other, merged where they overlap."""
    chosen = np.flatnonzero(connector).tolist()
    if not chosen:
        return NO_AREAS
    shapes = [shapely.LineString(centers[i]) for i in chosen]
    one, _ = _crossing(shapes)
    return _areas("intersection", _merged([rings[chosen[k]] for k in np.unique(one)]))


def _crossing(lines: Sequence[shapely.LineString]) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of lines that cross each other; ValueError where nearly all of very many overlap."""
    tree, found = shapely.STRtree(lines), []
    step = max(1, MOST_MEETINGS // max(len(lines), 1))
    for first in range(0, len(lines), step):
        found.append(tree.query(lines[first : first + step], predicate="crosses"))
        found[-1][0] += first
        if sum(pairs.shape[1] for pairs in found) > MOST_MEETINGS:
            raise ValueError(f"lanes cross each other more than {MOST_MEETINGS} times")
    one, other = np.concatenate(found, axis=1)
    return one, other


def _drivable(
    draft: RoadDraft, sides: Sides, triples: Sequence[Triple], rings: Sequence[np.ndarray], rebuilt: list[str],
    unknown: list[str],
) -> Areas:  # fmt: skip
    """Known areas, else all between lanes and road edges; none where there are no edges to go by."""
    if draft.drivable:
        return _areas("drivable", draft.drivable)
    if not draft.edges:
        unknown.append("drivable area")
        return NO_AREAS
    rebuilt.append("drivable area")
    surfaces = []
    for i, (center, left, right) in enumerate(triples):
        seen = len(center) == sides.first[i + 1] - sides.first[i]
        surfaces.append(surface_of(sides, i, left, right) if seen else rings[i])
    return _areas("drivable", _merged([*surfaces, *draft.surfaces]))


def _merged(rings: Sequence[np.ndarray]) -> list[list[np.ndarray]]:
    """Areas of the union of rings: exterior and holes."""
    shapes = np.array([shapely.Polygon(ring) for ring in rings if len(ring) >= 3], dtype=object)
    if not len(shapes):
        return []
    shapes = shapely.make_valid(shapely.simplify(shapes, SMOOTH))
    union = shapely.union_all(shapely.buffer(shapes, SMOOTH, quad_segs=1, join_style="mitre"))
    union = union.buffer(-SMOOTH, quad_segs=1, join_style="mitre").simplify(SMOOTH)
    parts = [part for part in shapely.get_parts(union) if part.geom_type == "Polygon" and part.area > 1.0]
    return [[np.asarray(ring.coords) for ring in (part.exterior, *part.interiors)] for part in parts]


def _areas(name: str, areas: Sequence[np.ndarray] | Sequence[list[np.ndarray]]) -> Areas:
    if not areas:
        return NO_AREAS
    rings = [[area] if isinstance(area, np.ndarray) else area for area in areas]
    return Areas(tuple(f"{name}-{i}" for i in range(len(rings))), Polygons.from_rings(rings))
