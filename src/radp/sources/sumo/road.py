"""From a built SUMO network to a `RoadMap`, with what the recording needs to find its way in it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from radp.geometry.kernels import project_on_line
from radp.geometry.ragged import Polygons, Ragged
from radp.road.roadblocks import union_of_members
from radp.scenario import Areas, RoadMap
from radp.sources.sumo import areas
from radp.sources.sumo.lanes import Connector, LaneLine, car_lanes, lay_connectors, lay_lanes, shape_of, speed_caps
from radp.sources.sumo.programs import sumo_module

OFF_ROAD = 0.15  # [m] a corner of the ego may be outside the drivable area
JAYWALK = "jay"  # nodes with this prefix carry crossings that no map shows


@dataclass(frozen=True)
class Light:
    """The light of one connector: lane index in the map, light id, place in the light's state string."""

    connector: int
    tls: str
    link: int


@dataclass(frozen=True)
class SumoRoad:
    """A `RoadMap` of L lanes and the names behind it."""

    map: RoadMap
    connectors: tuple[Connector, ...]  # the last lanes of the map, in its order
    lights: tuple[Light, ...]
    caps: dict[str, float]  # SUMO lane -> speed at which its bends are comfortable [m/s]
    edge_length: dict[str, float]
    edge_nodes: dict[str, tuple[str, str]]  # edge -> junctions at its start and end
    fringe_in: tuple[str, ...]  # edges where traffic enters
    fringe_out: tuple[str, ...]  # edges where it leaves
    kerb_lanes: tuple[str, ...]  # where vehicles stop to pick up and drop off
    kerb_areas: tuple[np.ndarray, ...]  # rings of kerb lane and the lane beside it
    parking_beside: tuple[str, ...]  # driving lanes with a parking strip at their right
    parking_lines: tuple[np.ndarray, ...]  # centre lines of parking strips
    jaywalks: tuple[str, ...]  # crossing edges that the map does not show
    sidewalks: tuple[str, ...]  # edges with a sidewalk

    @cached_property
    def first_connector(self) -> int:
        return len(self.map) - len(self.connectors)

    def connector(self, lane: int) -> Connector | None:
        """The connector at a place in the map, None for a lane."""
        return self.connectors[lane - self.first_connector] if lane >= self.first_connector else None

    @cached_property
    def lane_position(self) -> dict[str, int]:
        """SUMO lane, internal or not -> index in the map."""
        inside = {part: self.first_connector + i for i, c in enumerate(self.connectors) for part in c.parts}
        return {**inside, **self.map.lane_index}

    def position_on_lane(self, lane: int, point: np.ndarray) -> float:
        """Arc length [m] of a point on the lane's edge; 0 on a connector, whose length is not part of the edge's."""
        if lane < 0 or lane >= self.first_connector:
            return 0.0
        lines = self.map.centerlines
        return project_on_line(point[0], point[1], lines.values, lines.offsets[lane], lines.offsets[lane + 1])

    @cached_property
    def _between(self) -> dict[tuple[str, str], str]:
        return {(c.from_edge, c.to_edge): c.line.block for c in self.connectors}

    def roadblocks_of(self, edges: Sequence[str]) -> tuple[str, ...]:
        """Edges of a trip -> roadblock ids: edge, connector, edge, ..."""
        blocks = [edges[0]]
        for pair in pairwise(edges):
            blocks += [self._between[pair], pair[1]]
        return tuple(blocks)

    @cached_property
    def _onward(self) -> dict[str, list[str]]:
        out: dict[str, list[str]] = {edge: [] for edge in self.edge_nodes}
        for start, end in sorted(self._between):
            out[start].append(end)
        return out

    def reachable(self, edge: str) -> frozenset[str]:
        """All edges a car can get to from an edge, itself included."""
        seen, todo = {edge}, [edge]
        while todo:
            fresh = [e for e in self._onward[todo.pop()] if e not in seen]
            seen.update(fresh)
            todo += fresh
        return frozenset(seen)

    def lane_count(self, edge: str) -> int:
        """Lanes for cars."""
        return len(self.map.lanes_of_roadblock[self.map.roadblocks.index[edge]])

    def across(self, edge: str) -> list[str]:
        """The other direction of the same stretch of street."""
        there = self.edge_nodes[edge][::-1]
        return [other for other in self.sidewalks if self.edge_nodes[other] == there]

    def same_fringe(self, entering: str, leaving: str) -> bool:
        """Whether two fringe edges are the two directions of one road."""
        return self.edge_nodes[entering][0] == self.edge_nodes[leaving][1]

    @cached_property
    def near_sidewalks(self) -> dict[str, list[str]]:
        """Edge with a pavement -> other such edges at most two junctions away."""
        at: dict[str, set[str]] = {}
        for edge in self.sidewalks:
            for node in self.edge_nodes[edge]:
                at.setdefault(node, set()).add(edge)
        first = {edge: set().union(*(at[n] for n in self.edge_nodes[edge])) for edge in self.sidewalks}
        return {edge: sorted(set().union(*(first[e] for e in first[edge])) - {edge}) for edge in self.sidewalks}

    @cached_property
    def drivable_union(self) -> BaseGeometry:
        """All of the map on which a car may stand, with a margin of `OFF_ROAD`, as one prepared shape."""
        shapes = [
            shapely.make_valid(shapely.Polygon(rings[0], rings[1:]))
            for part in (self.map.drivable, self.map.intersections)
            for rings in (part.polygons[i] for i in range(len(part)))
        ]
        union = shapely.unary_union(shapes).buffer(OFF_ROAD)
        shapely.prepare(union)
        return union


def read_road(net_file: Path, name: str) -> SumoRoad:
    """Read a network and lay out its map."""
    net = sumo_module("sumolib.net").readNet(
        str(net_file), withInternal=True, withPrograms=True, withPedestrianConnections=True
    )
    edges = sorted((e for e in net.getEdges(withInternal=False) if car_lanes(e)), key=lambda e: e.getID())
    lanes = {e.getID(): lay_lanes(e) for e in edges}
    connectors = [c for e in edges for c in lay_connectors(net, e)]
    crossings = sorted(e.getID() for e in net.getEdges() if e.getFunction() == "crossing")
    jaywalks = tuple(c for c in crossings if c.startswith(f":{JAYWALK}"))
    road_map = _road_map(name, net, edges, lanes, connectors, [c for c in crossings if c not in jaywalks])
    beside = [lane for e in edges for lane in e.getLanes() if not lane.allows("passenger")]
    kerb = [lane for lane in beside if lane.allows("taxi")]
    parking = [lane for lane in beside if not lane.getPermissions()]
    first = len(road_map) - len(connectors)
    return SumoRoad(
        map=road_map,
        connectors=tuple(connectors),
        lights=tuple(Light(first + i, c.tls, c.link) for i, c in enumerate(connectors) if c.tls),
        caps=speed_caps(net),
        edge_length={e.getID(): float(e.getLength()) for e in edges},
        edge_nodes={e.getID(): (e.getFromNode().getID(), e.getToNode().getID()) for e in edges},
        fringe_in=tuple(e.getID() for e in edges if not any(car_lanes(i) for i in e.getIncoming())),
        fringe_out=tuple(e.getID() for e in edges if not any(car_lanes(o) for o in e.getOutgoing())),
        kerb_lanes=tuple(lane.getID() for lane in kerb),
        kerb_areas=tuple(areas.kerb_area(lane) for lane in kerb),
        parking_beside=tuple(lane.getEdge().getLanes()[lane.getIndex() + 1].getID() for lane in parking),
        parking_lines=tuple(shape_of(lane) for lane in parking),
        jaywalks=jaywalks,
        sidewalks=tuple(e.getID() for e in edges if any(lane.allows("pedestrian") for lane in e.getLanes())),
    )


def _road_map(
    name: str,
    net: Any,
    edges: Sequence[Any],
    lanes: dict[str, list[LaneLine]],
    connectors: Sequence[Connector],
    crossings: Sequence[str],
) -> RoadMap:
    """Lanes in the order of the edges, from the right; then the connectors."""
    plain = [line for edge in edges for line in lanes[edge.getID()]]
    lines = [*plain, *(c.line for c in connectors)]
    position = {line.name: i for i, line in enumerate(lines)}
    blocks = tuple(dict.fromkeys(line.block for line in lines))
    roadblock = np.array([blocks.index(line.block) for line in lines], dtype=np.int64)
    successors: list[list[int]] = [[] for _ in lines]
    predecessors: list[list[int]] = [[] for _ in lines]
    for i, connector in enumerate(connectors, start=len(plain)):
        source, target = position[connector.source], position[connector.target]
        predecessors[i], successors[i] = [source], [target]
        successors[source].append(i)
        predecessors[target].append(i)
    left = np.full(len(lines), -1, dtype=np.int64)
    right = left.copy()
    for i in range(len(plain) - 1):
        if plain[i].block == plain[i + 1].block:
            left[i], right[i + 1] = i + 1, i
    stop = areas.stop_lines({line.name: line for line in plain}, connectors)
    stop_of: list[list[int]] = [[]] * len(plain) + [[stop.index[c.source]] if c.tls else [] for c in connectors]
    return RoadMap(
        lane_ids=tuple(line.name for line in lines),
        is_connector=np.arange(len(lines)) >= len(plain),
        centerlines=Ragged.from_rows([line.center for line in lines], width=2),
        left=Ragged.from_rows([line.left for line in lines], width=2),
        right=Ragged.from_rows([line.right for line in lines], width=2),
        lane_polygons=Polygons.from_exteriors([line.ring for line in lines]),
        speed_limit=np.round([line.limit for line in lines], 2),
        has_speed_limit=np.ones(len(lines), dtype=bool),
        predecessors=Ragged.from_rows(predecessors, dtype=np.int64),
        successors=Ragged.from_rows(successors, dtype=np.int64),
        left_neighbor=left,
        right_neighbor=right,
        roadblock=roadblock,
        lane_stop_lines=Ragged.from_rows(stop_of, dtype=np.int64),
        roadblocks=Areas(blocks, union_of_members([line.ring for line in lines], roadblock, len(blocks))),
        intersections=areas.intersections(net, connectors),
        drivable=areas.drivable_bands(edges, lanes),
        stop_lines=stop,
        crosswalks=areas.crosswalks(net, crossings),
        name=name,
    )
