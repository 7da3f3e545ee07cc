"""Traffic of a network: trips from fringe to fringe, kerb stops, double parking, people on foot."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from radp.sources.sumo.passing import DOUBLE_PARKED
from radp.sources.sumo.road import SumoRoad
from radp.sources.sumo.vehicles import CATEGORIES, PEOPLE, SPECIAL, VehicleType, draw_types


@dataclass(frozen=True)
class TrafficRates:
    """How much of everything a network gets; rates per second."""

    per_lane: float = 0.05  # vehicles per entering lane
    persons: float = 0.006  # people per sidewalk
    jaywalkers: float = 0.12  # people per unmarked crossing
    kerb_stops: float = 0.04  # stops per kerb lane
    red_runners: float = 0.06  # share of cars
    ignorers: float = 0.05  # share of cars
    double_parked: float = 0.0  # chance of a van in the second row on an edge with a parking strip


@dataclass(frozen=True)
class Demand:
    """A written route file and who is in it: vehicle id -> type."""

    file: Path
    types: dict[str, VehicleType]


@dataclass(frozen=True)
class _Writer:
    """Everything that the parts of a demand have in common; `rows` are (time, element), `chosen` id -> type."""

    road: SumoRoad
    traffic: TrafficRates
    seconds: float
    types: dict[str, VehicleType]
    rng: np.random.Generator
    rows: list[tuple[float, ET.Element]] = field(default_factory=list)
    chosen: dict[str, VehicleType] = field(default_factory=dict)

    def times(self, rate: float) -> list[float]:
        """Poisson arrivals."""
        count = self.rng.poisson(rate * self.seconds)
        return sorted(self.rng.uniform(0, self.seconds, count).round(1).tolist())

    def of_category(self, category: str) -> VehicleType:
        """Any variant of a category that has no special manners."""
        usual = [t for t in self.types.values() if t.category == category and t.name not in SPECIAL]
        return usual[self.rng.integers(len(usual))]

    def trip(self, name: str, time: float, kind: VehicleType, start: str, end: str, **attributes: str) -> ET.Element:
        """Add a trip."""
        values = {"id": name, "type": kind.name, "depart": f"{time:.1f}", "from": start, "to": end}
        element = ET.Element("trip", values | {"departLane": "best", "departSpeed": "desired"} | attributes)
        self.rows.append((time, element))
        self.chosen[name] = kind
        return element

    def any_end(self, start: str) -> str | None:
        """An edge where a trip from `start` may leave the network, not back the way it came."""
        ends = [end for end in self.road.fringe_out if end in self.road.reachable(start)]
        ends = [end for end in ends if not self.road.same_fringe(start, end)]
        return str(self.rng.choice(ends)) if ends else None


def write_demand(
    road: SumoRoad, traffic: TrafficRates, seconds: float, rng: np.random.Generator, folder: Path
) -> Demand:
    """Write the route file of a run that lasts `seconds`."""
    types = draw_types(rng, SPECIAL)
    writer = _Writer(road, traffic, seconds, {t.name: t for t in types}, rng)
    _through_traffic(writer)
    _kerb_stops(writer)
    _double_parked(writer)
    _people(writer)
    root = ET.Element("routes")
    for kind in types:
        ET.SubElement(root, "vType", {"id": kind.name, **kind.attributes})
    for name, manners in PEOPLE.items():
        ET.SubElement(root, "vType", {"id": name, "vClass": "pedestrian", **manners})
    for _, element in sorted(writer.rows, key=lambda row: (row[0], row[1].attrib["id"])):
        root.append(element)
    file = folder / "demand.rou.xml"
    ET.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
    return Demand(file, writer.chosen)


def _through_traffic(writer: _Writer) -> None:
    """Trips between fringes; a few drivers run red lights or ignore the right of way."""
    traffic, rng = writer.traffic, writer.rng
    shares = np.array([category.share for category in CATEGORIES.values()])
    for edge in writer.road.fringe_in:
        for k, time in enumerate(writer.times(traffic.per_lane * writer.road.lane_count(edge))):
            category = str(rng.choice(list(CATEGORIES), p=shares / shares.sum()))
            kind, manners, end = writer.of_category(category), rng.random(), writer.any_end(edge)
            if category in ("car", "suv") and manners < traffic.red_runners + traffic.ignorers:
                kind = writer.types["redrunner" if manners < traffic.red_runners else "ignorer"]
            if end is not None:
                writer.trip(f"{edge}.{k}", time, kind, edge, end)


def _kerb_stops(writer: _Writer) -> None:
    """Taxis, delivery vans and buses that stop in a kerb lane for 8 to 30 s."""
    road, rng = writer.road, writer.rng
    for lane in road.kerb_lanes:
        edge, length = lane.rsplit("_", 1)[0], road.edge_length[lane.rsplit("_", 1)[0]]
        starts = [start for start in road.fringe_in if edge in road.reachable(start)]
        ends = [end for end in road.fringe_out if end in road.reachable(edge)]
        for k, time in enumerate(writer.times(writer.traffic.kerb_stops) if starts and ends else []):
            kind = writer.types[str(rng.choice(["taxi", "delivery", "kerbbus"], p=[0.6, 0.3, 0.1]))]
            trip = writer.trip(f"kerb.{lane}.{k}", time, kind, str(rng.choice(starts)), str(rng.choice(ends)), via=edge)
            spot = rng.uniform(kind.length + 12, max(length - 18, kind.length + 14))
            values = {"lane": lane, "endPos": f"{spot:.1f}", "duration": f"{rng.uniform(8, 30):.0f}"}
            ET.SubElement(trip, "stop", values)


def _double_parked(writer: _Writer) -> None:
    """Vans that stand at the right of a driving lane, in the second row beside a parking strip."""
    road, rng, kind = writer.road, writer.rng, writer.types["doubleparked"]
    for lane in road.parking_beside:
        edge = lane.rsplit("_", 1)[0]
        length = road.edge_length[edge]
        ends = [end for end in road.fringe_out if end in road.reachable(edge)]
        chance = writer.traffic.double_parked if length > 100 and ends else 0.0
        for k, spot in enumerate(rng.uniform(55, length - 40, int(rng.random() < chance))):
            place = {"departPos": f"{spot:.1f}", "departSpeed": "0", "departPosLat": "right"}
            trip = writer.trip(f"{DOUBLE_PARKED}{lane}.{k}", 0.0, kind, edge, str(rng.choice(ends)), **place)
            ET.SubElement(trip, "stop", {"lane": lane, "endPos": f"{spot + 0.5:.1f}", "duration": "10000"})


def _people(writer: _Writer) -> None:
    """Walks between pavements, and people who cross where no crosswalk is."""
    road, rng = writer.road, writer.rng
    walks = [("walker", edge, writer.traffic.persons, road.near_sidewalks[edge]) for edge in road.sidewalks]
    for crossing in road.jaywalks:
        edges = [e for e in road.sidewalks if crossing.rsplit("_", 1)[0][1:] in road.edge_nodes[e]]
        walks += [("jaywalker", edge, writer.traffic.jaywalkers / len(edges), road.across(edge)) for edge in edges]
    for kind, edge, rate, near in walks:
        for k, time in enumerate(writer.times(rate) if near else []):
            person = ET.Element("person", {"id": f"{kind}.{edge}.{k}", "type": kind, "depart": f"{time:.1f}"})
            person.set("departPos", "random")
            ET.SubElement(person, "walk", {"from": edge, "to": str(rng.choice(near)), "arrivalPos": "random"})
            writer.rows.append((time, person))
