"""Lanelets: lanes with both borders, their order and their neighbours."""

from __future__ import annotations

from xml.etree.ElementTree import Element

import numpy as np

from radp.geometry.lines import resample
from radp.sources.roads import LaneDraft, RoadDraft, clean_line, clean_ring, lane_length
from radp.sources.sound import speed_limit

NOT_FOR_CARS = {"crosswalk", "sidewalk", "bicycleLane"}
CENTER_SPACING = 1.0  # m


def read_draft(root: Element, name: str) -> RoadDraft:
    """All lanelets for cars; those of a junction are connectors where the file says so."""
    draft = RoadDraft(name.split(".")[0], knows_neighbors=True)
    inside = {e.attrib["ref"] for e in root.iter() if e.tag.startswith("successors") and "ref" in e.attrib}
    limits = _limits(root)
    for lanelet in root.findall("lanelet"):
        left, right = (_bound(lanelet, side) for side in ("leftBound", "rightBound"))
        if left is None or right is None:
            continue
        types = {(e.text or "").strip() for e in lanelet.findall("laneletType")}
        if types & NOT_FOR_CARS:
            ring = clean_ring(np.concatenate((left, right[::-1])))
            if "crosswalk" in types and ring is not None:
                draft.crosswalks.append(ring)
            continue
        count = max(2, round(lane_length(left, right) / CENTER_SPACING) + 1)
        left, right = resample(left, 1.0, count), resample(right, 1.0, count)
        center = clean_line((left + right) / 2)
        if center is None:
            continue
        known = bool(inside) or "intersection" in types
        draft.add(
            LaneDraft(
                id=lanelet.attrib["id"],
                center=center,
                left=left,
                right=right,
                successors=tuple(e.attrib["ref"] for e in lanelet.findall("successor")),
                left_neighbor=_neighbor(lanelet, "adjacentLeft"),
                right_neighbor=_neighbor(lanelet, "adjacentRight"),
                connector=(lanelet.attrib["id"] in inside or "intersection" in types) if known else None,
                speed_limit=_own_limit(lanelet, limits),
            )
        )
    return draft


def _bound(lanelet: Element, side: str) -> np.ndarray | None:
    points = [(float(p.findtext("x", "nan")), float(p.findtext("y", "nan"))) for p in lanelet.findall(f"{side}/point")]
    return clean_line(points) if points else None


def _neighbor(lanelet: Element, side: str) -> str | None:
    """The lanelet beside this one, if it leads in the same direction."""
    other = lanelet.find(side)
    return other.attrib.get("ref") if other is not None and other.attrib.get("drivingDir") == "same" else None


def _limits(root: Element) -> dict[str, float]:
    """Traffic sign -> m/s, for signs that set a maximum speed (274 and R2-1)."""
    limits = {}
    for sign in root.findall("trafficSign"):
        for element in sign.findall("trafficSignElement"):
            value = element.findtext("additionalValue")
            if (element.findtext("trafficSignID") or "").strip() in ("274", "R2-1") and value:
                known = speed_limit(float(value))
                if known is not None:
                    limits[sign.attrib["id"]] = known
    return limits


def _own_limit(lanelet: Element, limits: dict[str, float]) -> float | None:
    value = lanelet.findtext("speedLimit")
    own = speed_limit(float(value)) if value else None
    if own is not None:
        return own
    signs = [limits[e.attrib["ref"]] for e in lanelet.findall("trafficSignRef") if e.attrib.get("ref") in limits]
    return min(signs) if signs else None
