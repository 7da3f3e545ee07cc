"""The vector map of Argoverse 2: lane segments with both borders, drivable areas, crossings."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from radp.geometry.lines import resample
from radp.sources.convert import SourceError
from radp.sources.log_files import read_json, reading
from radp.sources.roads import BuiltRoad, LaneDraft, RoadDraft, build_road, clean_line, clean_ring, lane_length

CENTER_SPACING = 1.0  # m


def read_road(path: Path) -> BuiltRoad:
    """The road map of a log_map_archive_*.json; lane segments for bicycles and those without a border are left out."""
    data, name = read_json(path), path.name
    if not isinstance(data.get("lane_segments"), dict):
        raise SourceError(f"{name}: field 'lane_segments' is missing")
    draft = RoadDraft(name.removeprefix("log_map_archive_").split(".")[0].split("____")[-1], knows_neighbors=True)
    with reading(name, "lane_segments"):
        for lane in data["lane_segments"].values():
            one = read_lane(lane)
            if one is not None:
                draft.add(one)
    with reading(name, "drivable_areas"):
        rings = [clean_ring(points(area["area_boundary"])) for area in (data.get("drivable_areas") or {}).values()]
        draft.drivable = [ring for ring in rings if ring is not None]
    with reading(name, "pedestrian_crossings"):
        for walk in (data.get("pedestrian_crossings") or {}).values():
            ring = clean_ring(np.concatenate((points(walk["edge1"]), points(walk["edge2"])[::-1])))
            if ring is not None:
                draft.crosswalks.append(ring)
    with reading(name, "lane_segments"):
        return build_road(draft)


def points(rows: list[dict[str, float]]) -> np.ndarray:
    return np.array([(row["x"], row["y"]) for row in rows], dtype=np.float64).reshape(-1, 2)


def read_lane(lane: dict[str, Any]) -> LaneDraft | None:
    """A lane; its centre is the mean of its borders."""
    left, right = (clean_line(points(lane[f"{side}_lane_boundary"])) for side in ("left", "right"))
    if lane.get("lane_type") == "BIKE" or left is None or right is None:
        return None
    count = max(2, round(lane_length(left, right) / CENTER_SPACING) + 1)
    left, right = resample(left, 1.0, count), resample(right, 1.0, count)
    center = clean_line((left + right) / 2)
    if center is None:
        return None
    neighbors = [None if lane.get(f"{side}_neighbor_id") is None else str(lane[f"{side}_neighbor_id"])
                 for side in ("left", "right")]  # fmt: skip
    return LaneDraft(
        id=str(lane["id"]),
        center=center,
        left=left,
        right=right,
        successors=tuple(str(other) for other in lane.get("successors") or ()),
        left_neighbor=neighbors[0],
        right_neighbor=neighbors[1],
        connector=bool(lane.get("is_intersection")),
    )
