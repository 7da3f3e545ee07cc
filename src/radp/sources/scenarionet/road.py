"""Map features of ScenarioNet: what each type tells of the road."""

from __future__ import annotations

from typing import Any

import numpy as np

from radp.sources import sound
from radp.sources.roads import LaneDraft, RoadDraft, clean_line, clean_ring

MARGIN = 150.0  # m around all tracks within which the map is kept
MPH, KMH = 0.44704, 1.0 / 3.6
CONNECTOR_TYPE = "LANE_SURFACE_UNSTRUCTURE"
DRIVEWAY, CROSSWALKS = "DRIVEWAY", ("CROSSWALK", "CROSS_WALK")
RINGS = (DRIVEWAY, *CROSSWALKS)  # areas, whatever field their outline stands in
PLACEHOLDER_LIMITS = ("nuscenes",)  # sets whose speed limit is a constant written by the converter


def read_draft(
    features: dict[str, Any], lights: dict[str, Any], dataset: str, near: np.ndarray, name: str
) -> RoadDraft:
    """All that lies near (2, 2) the tracks; features without a usable geometry are passed over."""
    draft = RoadDraft(name.split(".")[0])
    types = {str(feature.get("type")) for feature in features.values()}
    linked = any(feature.get("exit_lanes") for feature in features.values())
    flagged = any(_flag(feature) for feature in features.values())
    for key, feature in features.items():
        kind = str(feature.get("type"))
        line = clean_line(_points(feature, "polyline")) if "polyline" in feature else None
        rounded = "polygon" in feature or line is None or kind in RINGS
        ring = clean_ring(_points(feature, "polygon" if "polygon" in feature else "polyline")) if rounded else None
        shape = line if line is not None else ring
        if shape is None or not _is_near(shape, near):
            continue
        if kind.startswith("LANE") and "BIKE" not in kind and line is not None:
            connector = kind == CONNECTOR_TYPE if CONNECTOR_TYPE in types else _flag(feature) if flagged else None
            after = tuple(str(other) for other in feature.get("exit_lanes") or ()) if linked else None
            limit = None if dataset in PLACEHOLDER_LIMITS else speed_limit(feature)
            draft.add(
                LaneDraft(str(key), line, successors=after, connector=connector, speed_limit=limit)
            )  # fmt: skip
            if ring is not None and "polygon" in feature:
                draft.lines.append(np.concatenate((ring, ring[:1])))
        elif kind.startswith("ROAD_LINE") and line is not None:
            draft.lines.append(line)
        elif kind.startswith("ROAD_EDGE"):
            draft.edges.append(shape if line is not None else np.concatenate((shape, shape[:1])))
        elif kind in CROSSWALKS and ring is not None:
            draft.crosswalks.append(ring)
        elif kind == DRIVEWAY and ring is not None:
            draft.surfaces.append(ring)
    for key, row in lights.items():
        draft.stops[str(row.get("lane", key))] = np.zeros(2)
    return draft


def _points(feature: dict[str, Any], field: str) -> list[Any] | np.ndarray:
    points = feature.get(field)
    return [] if points is None else points


def _flag(feature: dict[str, Any]) -> bool:
    """Whether a lane is marked as one that Waymo drew through a junction."""
    return str(feature.get("interpolating")) == "True"


def _is_near(shape: np.ndarray, near: np.ndarray) -> bool:
    return bool((shape.max(axis=0) > near[0] - MARGIN).all() and (shape.min(axis=0) < near[1] + MARGIN).all())


def speed_limit(feature: dict[str, Any]) -> float | None:
    """m/s; None where it is missing or 0. ValueError for what is no speed."""
    for field, unit in (("speed_limit_mph", MPH), ("speed_limit_kmh", KMH)):
        value = feature.get(field)
        if value is not None and float(value) != 0:
            return sound.speed_limit(float(value) * unit)
    return None
