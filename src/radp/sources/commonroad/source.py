"""CommonRoad XML of the versions 2017a, 2018a, 2018b and 2020a, read as plain XML.

The traffic was recorded from outside: there is no ego, any vehicle with a full track may be it, or nobody of them
(`--ego problem`: the start and the goal of each planning problem). Nothing but the lanelets tells where the road is,
and lights change by cycles that are seldom given.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree
from xml.etree.ElementTree import Element
from xml.parsers import expat
from xml.parsers.expat import ExpatError

import numpy as np

from radp.scenario import DT, DT_US, ObjectType, Scenario, Tracks
from radp.scenario.egos import PROBLEM
from radp.scenario.recording import Recording, no_lights, usual_start
from radp.sources.commonroad.problem import problem_scenarios
from radp.sources.commonroad.road import read_draft
from radp.sources.commonroad.states import number, read_state
from radp.sources.convert import REBUILT, UNKNOWN, FileItem, Refused, SourceError
from radp.sources.limits import MOST_XML_BYTES, MOST_XML_DEPTH, MOST_XML_ELEMENTS
from radp.sources.log_files import find_logs, read_bytes, reading
from radp.sources.motion import at_rate
from radp.sources.roads import build_road
from radp.sources.settings import LogChoice
from radp.sources.sound import room_for

TYPES = {
    **dict.fromkeys(("car", "truck", "bus", "priorityVehicle", "taxi", "train"), ObjectType.VEHICLE),
    **dict.fromkeys(("bicycle", "motorcycle"), ObjectType.BICYCLE),
    "pedestrian": ObjectType.PEDESTRIAN,
    "constructionZone": ObjectType.BARRIER,
}
HEIGHT = 1.6


@dataclass(frozen=True)
class CommonRoad:
    """Source of CommonRoad files, plain or compressed with gzip or xz."""

    name: str = "commonroad"

    def items(self, options: LogChoice) -> list[FileItem]:
        return find_logs(options, (".xml", ".xml.gz", ".xml.xz"))

    def scenarios(self, item: FileItem) -> Iterator[Recording | Scenario | Refused]:
        if item.ego != PROBLEM:
            yield read_recording(item.path)
            return
        root = parse(item.path)
        with reading(item.path.name, "scenario"):
            log = _recording(root, item.path.name)
        if root.find("planningProblem") is None:
            raise SourceError(f"{item.path.name}: it has no planning problem; choose --ego all or the id of a vehicle")
        yield from problem_scenarios(root, log, float(root.attrib["timeStepSize"]))


COMMONROAD = CommonRoad()


def parse(path: Path) -> Element:
    """The root element; a document with a type of its own (where entities are defined) is refused."""
    raw = read_bytes(path, MOST_XML_BYTES)
    if raw.count(b"<") > 2 * MOST_XML_ELEMENTS:
        raise SourceError(f"{path.name}: it has more than {MOST_XML_ELEMENTS} elements")
    try:
        refuse_document_type(raw)
        root = ElementTree.fromstring(raw)
        check_depth(root)
    except (ElementTree.ParseError, ExpatError, ValueError, LookupError) as error:
        raise SourceError(f"{path.name}: not readable as XML ({error})") from None
    if root.tag != "commonRoad":
        raise SourceError(f"{path.name}: expected a commonRoad document, found {root.tag!r}")
    return root


class _Begun(Exception):
    """The root element has been met: no document type can follow."""


def refuse_document_type(raw: bytes) -> None:
    """ValueError if a document declares its type, in whatever encoding: the parser itself says so."""

    def declared(*_: Any) -> None:
        raise ValueError("it has a document type of its own, which scenarios do not need")

    def begun(*_: Any) -> None:
        raise _Begun

    parser = expat.ParserCreate()
    parser.StartDoctypeDeclHandler, parser.EntityDeclHandler, parser.StartElementHandler = declared, declared, begun
    with suppress(_Begun):
        parser.Parse(raw, True)


def check_depth(root: Element) -> None:
    level = [root]
    for _ in range(MOST_XML_DEPTH):
        level = [child for element in level for child in element]
        if not level:
            return
    raise ValueError(f"elements are nested more than {MOST_XML_DEPTH} deep")


def read_recording(path: Path) -> Recording:
    """The log in a file; SourceError names what is wrong with it."""
    with reading(path.name, "scenario"):
        return _recording(parse(path), path.name)


def _recording(root: Element, name: str) -> Recording:
    with reading(name, "timeStepSize"):
        dt = float(root.attrib["timeStepSize"])
        if not 0.005 <= dt <= 1.0:
            raise SourceError(f"{name}: timeStepSize is {dt}, expected seconds between 0.005 and 1")
    with reading(name, "lanelet"):
        road = build_road(read_draft(root, name))
    with reading(name, "obstacle"):
        tracks = read_tracks(root, dt)
    if abs(dt - DT) > 1e-6:
        tracks = Tracks(tracks.ids, tracks.type, tracks.size, *at_rate(tracks.state, tracks.valid, dt, DT))
    frames = tracks.valid.shape[1]
    return Recording(
        token=root.attrib.get("benchmarkID") or name.split(".")[0],
        source="commonroad",
        map=road.map,
        time_us=np.arange(frames, dtype=np.int64) * DT_US,
        tracks=tracks,
        lights=no_lights(frames),
        sdc=None,
        start=usual_start(frames),
        tags={REBUILT: ", ".join((*road.rebuilt, "route")), UNKNOWN: ", ".join((*road.unknown, "traffic lights"))},
    )


def read_tracks(root: Element, dt: float) -> Tracks:
    """All obstacles with a rectangle or a circle; static ones stand throughout."""
    obstacles = [e for e in root if e.tag in ("obstacle", "dynamicObstacle", "staticObstacle")]
    rows = {e.attrib["id"]: [s for s in e.iter() if s.tag in ("initialState", "state")] for e in obstacles}
    times = [number(s, "time") for states in rows.values() for s in states if s.find("time") is not None]
    if not times:
        raise ValueError("there is no recorded traffic")
    in_seconds = any(abs(t - round(t)) > 1e-6 for t in times)  # before 2018b; later versions count steps
    unit = 1.0 / dt if in_seconds else 1.0
    frames = round(max(times) * unit) + 1
    room_for(len(rows), frames)
    state, valid = np.zeros((len(rows), frames, 5)), np.zeros((len(rows), frames), dtype=bool)
    size, kinds = np.zeros((len(rows), 3)), np.zeros(len(rows), dtype=np.uint8)
    for i, obstacle in enumerate(obstacles):
        size[i] = read_size(obstacle)
        kinds[i] = TYPES.get((obstacle.findtext("type") or "").strip(), ObjectType.GENERIC_OBJECT)
        for one in rows[obstacle.attrib["id"]]:
            row = read_state(one)
            frame = round(number(one, "time") * unit) if one.find("time") is not None else 0
            if np.isfinite(row).all() and frame >= 0:
                state[i, frame], valid[i, frame] = row, True
        if obstacle.tag == "staticObstacle" or (obstacle.findtext("role") or "").strip() == "static":
            state[i], valid[i] = state[i, 0], valid[i, 0]
    return Tracks(tuple(rows), kinds, size, state, valid)


def read_size(obstacle: Element) -> tuple[float, float, float]:
    rectangle = obstacle.find("shape/rectangle")
    if rectangle is not None:
        return number(rectangle, "length"), number(rectangle, "width"), HEIGHT
    radius = obstacle.find("shape/circle")
    if radius is not None:
        return 2 * number(radius, "radius"), 2 * number(radius, "radius"), HEIGHT
    raise ValueError(f"obstacle {obstacle.attrib.get('id')} has neither a rectangle nor a circle as its shape")
