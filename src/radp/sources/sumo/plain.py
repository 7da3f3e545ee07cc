"""A road network as SUMO's plain XML: nodes, edges, connections and crossings before netconvert builds it."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Callable, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from radp.sources.sumo.programs import run_program

LANE_WIDTH = 3.3
SIDEWALK_WIDTH = 2.5
KERB_WIDTH = 2.6
PARKING_WIDTH = 2.4
KERB_CLASSES = "taxi delivery bus"  # who may stop in a kerb lane; through traffic may not use it
DENSITY = 6.0  # [m] between shape points when a network is bent

BUILD = (
    *("--no-turnarounds", "--walkingareas"),
    *("--junctions.internal-link-detail", "30"),  # smooth joints
    *("--junctions.corner-detail", "8"),
    *("--junctions.limit-turn-speed", "1.5"),
    *("--precision", "4"),
)

Warp = Callable[[np.ndarray], np.ndarray]


class PlainNet:
    """Nodes, edges and connections under construction. Coordinates in metres; lane 0 is the right-most one."""

    def __init__(self) -> None:
        self.nodes = ET.Element("nodes")
        self.edges = ET.Element("edges")
        self.connections = ET.Element("connections")

    @classmethod
    def read(cls, folder: Path, prefix: str) -> PlainNet:
        """What netgenerate wrote; programs of lights and outlines are left to netconvert."""
        net = cls()
        net.nodes = ET.parse(folder / f"{prefix}.nod.xml").getroot()
        net.edges = ET.parse(folder / f"{prefix}.edg.xml").getroot()
        net.connections = ET.parse(folder / f"{prefix}.con.xml").getroot()
        for crossing in net.connections.iter("crossing"):
            crossing.attrib.pop("outlineShape", None)
        return net

    def node(self, name: str, xy: Sequence[float] | np.ndarray, kind: str = "priority", **attributes: Any) -> None:
        """One junction."""
        values = {"id": name, "x": f"{xy[0]:.4f}", "y": f"{xy[1]:.4f}", "type": kind}
        ET.SubElement(self.nodes, "node", values | _text(attributes))

    def place(self, name: str) -> np.ndarray:
        """(2,) where a node is."""
        node = next(n for n in self.nodes.iter("node") if n.get("id") == name)
        return np.array([float(node.attrib["x"]), float(node.attrib["y"])])

    def edge(
        self,
        name: str,
        start: str,
        end: str,
        lanes: int,
        speed: float,
        *,
        shape: np.ndarray | None = None,
        sidewalk: bool = True,
        kerb: bool = False,
        parking: bool = False,
        bike: bool = False,
        width: float = LANE_WIDTH,
        **attributes: Any,
    ) -> None:
        """One direction of a road. From the right: sidewalk, parking strip, kerb lane, bicycle lane, driving lanes."""
        extra: list[dict[str, object]] = []
        if sidewalk:
            extra.append({"allow": "pedestrian", "width": SIDEWALK_WIDTH})
        if parking:
            extra.append({"disallow": "all", "width": PARKING_WIDTH})
        if kerb:
            extra.append({"allow": KERB_CLASSES, "width": KERB_WIDTH})
        if bike:
            extra.append({"allow": "bicycle", "width": 1.8})
        driving = {"disallow": "pedestrian tram rail_urban rail", "width": width}
        rows = [*extra, *([driving] * lanes)]
        values: dict[str, object] = {"id": name, "from": start, "to": end, "numLanes": len(rows), "speed": speed}
        if shape is not None:
            values["shape"] = _shape_text(shape)
        element = ET.SubElement(self.edges, "edge", _text(values | attributes))
        for index, row in enumerate(rows):
            ET.SubElement(element, "lane", {"index": str(index)} | _text(row))

    def first_driving_lane(self, name: str) -> int:
        """Index of the right-most lane for cars."""
        lanes = list(self._edge(name).iter("lane"))
        return next(i for i, lane in enumerate(lanes) if lane.get("disallow", "all") != "all")

    def driving_lanes(self, name: str) -> int:
        """Number of lanes for cars."""
        return int(self._edge(name).attrib["numLanes"]) - self.first_driving_lane(name)

    def _edge(self, name: str) -> ET.Element:
        return next(e for e in self.edges.iter("edge") if e.get("id") == name)

    def connect(self, start: str, end: str, pairs: Sequence[tuple[int, int]], **attributes: Any) -> None:
        """Connections of driving lanes, counted from the right-most driving lane of either edge."""
        base_start, base_end = self.first_driving_lane(start), self.first_driving_lane(end)
        for a, b in pairs:
            values = {"from": start, "to": end, "fromLane": base_start + a, "toLane": base_end + b}
            ET.SubElement(self.connections, "connection", _text(values | attributes))

    def forbid(self, source: str, target: str) -> None:
        """Take out the connection between two lanes."""
        (start, a), (end, b) = source.rsplit("_", 1), target.rsplit("_", 1)
        values = {"from": start, "to": end, "fromLane": a, "toLane": b}
        for element in list(self.connections):
            if element.tag == "connection" and values.items() <= element.attrib.items():
                self.connections.remove(element)
        ET.SubElement(self.connections, "delete", values)

    def crossing(self, node: str, edges: Sequence[str], priority: bool = True, width: float = 4.0) -> None:
        """A pedestrian crossing over the given edges at a node."""
        values = {"node": node, "edges": " ".join(edges), "priority": int(priority), "width": width}
        ET.SubElement(self.connections, "crossing", _text(values))

    def roundabout(self, nodes: Sequence[str], edges: Sequence[str]) -> None:
        """Declare a ring, so that its right of way is built."""
        ET.SubElement(self.edges, "roundabout", {"nodes": " ".join(nodes), "edges": " ".join(edges)})

    def bend(self, warp: Warp) -> None:
        """Push every node and every densified edge shape through one smooth map, which keeps junction angles."""
        place = {
            n.attrib["id"]: np.array([float(n.attrib["x"]), float(n.attrib["y"])]) for n in self.nodes.iter("node")
        }
        for edge in self.edges.iter("edge"):
            ends = np.array([place[edge.attrib["from"]], place[edge.attrib["to"]]])
            shape = _shape_points(edge.attrib["shape"]) if edge.get("shape") else ends
            edge.set("shape", _shape_text(warp(densify(shape, DENSITY))))
        for node in self.nodes.iter("node"):
            x, y = warp(place[node.attrib["id"]][None])[0]
            node.set("x", f"{x:.4f}")
            node.set("y", f"{y:.4f}")
            node.attrib.pop("shape", None)

    def build(self, folder: Path, name: str, options: Sequence[str] = ()) -> Path:
        """Write the plain files and let netconvert make `name`.net.xml."""
        for root, suffix in ((self.nodes, "nod"), (self.edges, "edg"), (self.connections, "con")):
            ET.ElementTree(root).write(folder / f"{name}.{suffix}.xml", encoding="utf-8", xml_declaration=True)
        files = ["-n", f"{name}.nod.xml", "-e", f"{name}.edg.xml", "-x", f"{name}.con.xml"]
        run_program("netconvert", [*files, *BUILD, *options, "-o", f"{name}.net.xml"], folder)
        return folder / f"{name}.net.xml"


def densify(points: np.ndarray, step: float) -> np.ndarray:
    """(P, 2) -> (Q, 2): the same polyline with no segment longer than `step`; corners stay."""
    rows = [points[:1]]
    for a, b in pairwise(points):
        count = max(1, int(np.ceil(np.hypot(*(b - a)) / step)))
        rows.append(a + (b - a) * np.linspace(0, 1, count + 1)[1:, None])
    return np.concatenate(rows)


def sine_warp(rng: np.random.Generator, amplitude: float, wavelength: float) -> Warp:
    """A smooth map of the plane: each axis swings over the other one."""
    phase = rng.uniform(0, 2 * np.pi, 2)
    lengths = wavelength * rng.uniform(0.9, 1.1, 2)

    def warp(points: np.ndarray) -> np.ndarray:
        swing = amplitude * np.sin(2 * np.pi * points[:, ::-1] / lengths + phase)
        return points + swing

    return warp


def _text(values: dict[str, object]) -> dict[str, str]:
    return {key: f"{value:.4f}" if isinstance(value, float) else str(value) for key, value in values.items()}


def _shape_text(points: np.ndarray) -> str:
    return " ".join(f"{x:.4f},{y:.4f}" for x, y in points)


def _shape_points(text: str) -> np.ndarray:
    return np.array([[float(v) for v in pair.split(",")[:2]] for pair in text.split()])
