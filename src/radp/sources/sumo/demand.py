"""Traffic of a network: trips from fringe to fringe, kerb stops, double parking, people on foot."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from radp.sources.sumo.road import Road
from radp.sources.sumo.vehicles import CATEGORIES, IGNORER, RED_RUNNER, VehicleType, draw_types


@dataclass(frozen=True)
class Traffic:
    """How much of everything a network gets; rates per second."""

    per_lane: float = 0.05  # vehicles per entering lane
    persons: float = 0.006  # people per sidewalk
    jaywalkers: float = 0.05  # people per unmarked crossing
    kerb_stops: float = 0.3  # stops per kerb lane and 10 s
    red_runners: float = 0.03  # share of cars
    ignorers: float = 0.03  # share of cars
    double_parked: float = 0.0  # vans per 100 m of lane on edges with a parking strip


@dataclass(frozen=True)
class Demand:
    """A written route file and who is in it: vehicle id -> type."""

    file: Path
    types: dict[str, VehicleType]


def write_demand(road: Road, traffic: Traffic, seconds: float, rng: np.random.Generator, folder: Path) -> Demand:
    """Write the route file of a run that lasts `seconds`."""
    types = draw_types(rng, {"redrunner": RED_RUNNER, "ignorer": IGNORER})
    rows: list[tuple[float, ET.Element]] = []
    chosen: dict[str, VehicleType] = {}
    for time, element, kind in [
        *_trips(road, traffic, seconds, types, rng),
        *_kerb_trips(road, traffic, seconds, types, rng),
    ]:
        rows.append((time, element))
        chosen[element.attrib["id"]] = kind
    rows += _people(road, traffic, seconds, rng)
    root = ET.Element("routes")
    for kind in types:
        ET.SubElement(root, "vType", {"id": kind.name, **kind.attributes})
    ET.SubElement(root, "vType", {"id": "walker", "vClass": "pedestrian", "speedFactor": "normc(1,0.15,0.6,1.4)"})
    jay = {"jmIgnoreFoeProb": "1", "jmIgnoreFoeSpeed": "30"}
    ET.SubElement(root, "vType", {"id": "jaywalker", "vClass": "pedestrian", "speedFactor": "1.2"} | jay)
    for _, element in sorted(rows, key=lambda row: (row[0], row[1].attrib["id"])):
        root.append(element)
    file = folder / "demand.rou.xml"
    ET.ElementTree(root).write(file, encoding="utf-8", xml_declaration=True)
    return Demand(file, chosen)


def _poisson(rate: float, seconds: float, rng: np.random.Generator) -> list[float]:
    return sorted(rng.uniform(0, seconds, rng.poisson(rate * seconds)).round(1).tolist())


def _trips(
    road: Road, traffic: Traffic, seconds: float, types: list[VehicleType], rng: np.random.Generator
) -> list[tuple[float, ET.Element, VehicleType]]:
    """Trips between fringes, never back the way they came."""
    regular = {
        name: [t for t in types if t.category == name and t.name not in ("redrunner", "ignorer")] for name in CATEGORIES
    }
    special = {t.name: t for t in types if t.name in ("redrunner", "ignorer")}
    shares = np.array([category.share for category in CATEGORIES.values()])
    out = []
    for edge in road.fringe_in:
        lanes = sum(1 for lane in road.map.lane_ids if lane.rsplit("_", 1)[0] == edge)
        targets = [t for t in road.fringe_out if t in road.reachable[edge] and not road.same_fringe(edge, t)]
        for k, time in enumerate(_poisson(traffic.per_lane * lanes, seconds, rng) if targets else []):
            category = str(rng.choice(list(CATEGORIES), p=shares / shares.sum()))
            kind = regular[category][rng.integers(len(regular[category]))]
            manners = rng.random()
            if category in ("car", "suv") and manners < traffic.red_runners + traffic.ignorers:
                kind = special["redrunner" if manners < traffic.red_runners else "ignorer"]
            out.append((time, _trip(f"{edge}.{k}", time, kind, edge, str(rng.choice(targets))), kind))
    return out


def _trip(name: str, time: float, kind: VehicleType, start: str, end: str) -> ET.Element:
    return ET.Element(
        "trip",
        {"id": name, "type": kind.name, "depart": f"{time:.1f}", "from": start, "to": end, "departLane": "best",
         "departSpeed": "desired"},
    )  # fmt: skip


def _kerb_trips(
    road: Road, traffic: Traffic, seconds: float, types: list[VehicleType], rng: np.random.Generator
) -> list[tuple[float, ET.Element, VehicleType]]:
    """Taxis, delivery vans and buses that stop in a kerb lane for 8 to 30 s."""
    return []


def _people(road: Road, traffic: Traffic, seconds: float, rng: np.random.Generator) -> list[tuple[float, ET.Element]]:
    """Walks between pavements."""
    out = []
    for edge in road.sidewalks:
        near = road.near_sidewalks[edge]
        for k, time in enumerate(_poisson(traffic.persons, seconds, rng) if near else []):
            person = ET.Element("person", {"id": f"p.{edge}.{k}", "type": "walker", "depart": f"{time:.1f}"})
            person.set("departPos", "random")
            ET.SubElement(person, "walk", {"from": edge, "to": str(rng.choice(near)), "arrivalPos": "random"})
            out.append((time, person))
    return out
