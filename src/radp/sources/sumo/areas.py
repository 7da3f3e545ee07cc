"""Areas of a SUMO network: junctions, drivable bands, stop lines, crosswalks, kerbs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import shapely
from shapely.geometry.base import BaseGeometry

from radp.geometry.lines import offset, resample, tangents
from radp.geometry.ragged import Polygons
from radp.scenario import NO_AREAS, Areas
from radp.sources.sumo.lanes import Connector, LaneLine, grid, shape_of

STOP_LINE_DEPTH, STOP_LINE_INSET = 0.3, 0.15  # [m] half depth; distance from the lane's borders
CLOSE = 0.1  # [m] slivers between polygons narrower than twice this are closed
SHOULDER = 0.8  # [m] of asphalt beside the lanes of a junction
SMALL_HOLE = 20.0  # [m^2]
SPECK = 2.0  # [m^2] smaller parts are leftovers of the pavement
SIMPLE = 0.01  # [m] tolerance of simplified outlines


def outline(shape: BaseGeometry) -> list[np.ndarray]:
    """Rings of a shape after closing slivers and small holes."""
    closed = shape
    for width in (CLOSE, -2 * CLOSE, CLOSE):  # closes slivers, then takes off whiskers
        closed = closed.buffer(width, join_style="mitre")
    closed = closed.simplify(SIMPLE)
    rings = []
    for part in shapely.get_parts(closed):
        if part.area < SPECK:
            continue
        rings.append(np.asarray(part.exterior.coords))
        rings += [np.asarray(hole.coords) for hole in part.interiors if shapely.Polygon(hole).area > SMALL_HOLE]
    return [grid(ring) for ring in rings]


def areas_of(rows: Sequence[tuple[str, list[np.ndarray]]]) -> Areas:
    """Named rings -> Areas."""
    return Areas(tuple(name for name, _ in rows), Polygons.from_rings([r for _, r in rows])) if rows else NO_AREAS


def intersections(net: Any, connectors: Sequence[Connector]) -> Areas:
    """One area per junction: its polygon without the pavement corners, and its connectors with a shoulder."""
    bands: dict[str, list[BaseGeometry]] = {}
    for connector in connectors:
        band = shapely.make_valid(shapely.Polygon(connector.line.ring)).buffer(SHOULDER)
        bands.setdefault(connector.node, []).append(band)
    rows = []
    for node in sorted(bands):
        shape = shapely.make_valid(shapely.Polygon(np.array(net.getNode(node).getShape())[:, :2]))
        corners = [
            shapely.make_valid(shapely.Polygon(np.array(edge.getLanes()[0].getShape())[:, :2]))
            for edge in net.getEdges()
            if edge.getFunction() == "walkingarea" and edge.getID().startswith(f":{node}_w")
        ]
        road = shape.difference(shapely.unary_union(corners)) if corners else shape
        rows.append((node, outline(shapely.unary_union([road, *bands[node]]))))
    return areas_of(rows)


def drivable_bands(edges: Sequence[Any], lanes: dict[str, list[LaneLine]]) -> Areas:
    """One area per edge: all its lanes except pavements, that is also parking strips, kerb and bicycle lanes."""
    rows = []
    for edge in edges:
        rings = [line.ring for line in lanes[edge.getID()]]
        for lane in edge.getLanes():
            if not lane.allows("passenger") and not lane.allows("pedestrian"):
                rings.append(band(shape_of(lane), lane.getWidth()))
        shape = shapely.unary_union([shapely.make_valid(shapely.Polygon(ring)) for ring in rings])
        rows.append((edge.getID(), outline(shape)))
    return areas_of(rows)


def band(center: np.ndarray, width: float, spacing: float = 1.0) -> np.ndarray:
    """Ring of a strip around a centre line."""
    points = resample(center, spacing)
    return np.concatenate([offset(points, width / 2), offset(points, -width / 2)[::-1]])


def stop_lines(lanes: dict[str, LaneLine], connectors: Sequence[Connector]) -> Areas:
    """One thin area across the end of each lane that has a light; named like the lane."""
    rows = []
    for name in sorted({c.source for c in connectors if c.tls}):
        line = lanes[name]
        ahead = tangents(line.center[-2:])[-1] * STOP_LINE_DEPTH
        across = line.left[-1] - line.right[-1]
        inset = across / np.hypot(*across) * STOP_LINE_INSET
        left, right = line.left[-1] - inset, line.right[-1] + inset
        rows.append((name, [grid(np.array([left - ahead, right - ahead, right + ahead, left + ahead]))]))
    return areas_of(rows)


def crosswalks(net: Any, crossings: Sequence[str]) -> Areas:
    """One area per crossing."""
    rows = []
    for name in crossings:
        lane = net.getEdge(name).getLanes()[0]
        rows.append((name, [grid(band(shape_of(lane), lane.getWidth(), spacing=100.0))]))
    return areas_of(rows)


def kerb_area(lane: Any) -> np.ndarray:
    """Ring of the place where passengers board: the kerb lane and the driving lane beside it."""
    center = resample(shape_of(lane), 2.0)
    beside = lane.getWidth() / 2 + lane.getEdge().getLanes()[lane.getIndex() + 1].getWidth()
    return np.concatenate([offset(center, beside), offset(center, -lane.getWidth() / 2)[::-1]])
