"""A log small enough to draw by hand, in the layouts of several sources: a two-way street of 200 m with a fork."""

from __future__ import annotations

from typing import Any

import numpy as np

FRAMES = 91


def xyz(points: np.ndarray) -> list[dict[str, float]]:
    return [{"x": float(x), "y": float(y), "z": 0.0} for x, y in points]


def straight(y: float, first: float, last: float) -> np.ndarray:
    x = np.linspace(first, last, round(abs(last - first) / 0.5) + 1)
    return np.stack((x, np.full(len(x), y)), axis=1)


def bend(x: float, y: float, radius: float) -> np.ndarray:
    """A right turn by 90 degrees from (x, y) heading east."""
    angle = np.linspace(0, np.pi / 2, 20)
    return np.stack((x + radius * np.sin(angle), y - radius * (1 - np.cos(angle))), axis=1)


ROADS: dict[int, tuple[str, np.ndarray]] = {
    1: ("lane", straight(-1.8, 0, 100)),
    2: ("lane", straight(-1.8, 100, 200)),
    3: ("lane", bend(100, -1.8, 12)),
    4: ("lane", straight(1.8, 200, 0)),
    5: ("lane", straight(-5.4, 0, 100)),
    10: ("road_line", straight(0.0, 0, 200)),
    11: ("road_line", straight(-3.6, 0, 100)),
    20: ("road_edge", straight(-9.0, 0, 100)),
    21: ("road_edge", straight(3.6, 0, 200)),
    30: ("crosswalk", np.array([[90.0, -9], [94, -9], [94, 3.6], [90, 3.6]])),
}


def track(x0: float, y: float, speed: float, heading: float = 0.0, seen: slice = slice(None)) -> dict[str, Any]:
    """Constant speed along the street; frames that are not seen hold Waymo's mark for it."""
    time = np.arange(FRAMES) * 0.1
    position = np.stack((x0 + speed * time * np.cos(heading), np.full(FRAMES, y)), axis=1)
    valid = np.zeros(FRAMES, dtype=bool)
    valid[seen] = True
    position[~valid] = -10_000.0
    return {
        "position": xyz(position),
        "velocity": [{"x": speed * float(np.cos(heading)), "y": 0.0}] * FRAMES,
        "heading": [heading] * FRAMES,
        "valid": valid.tolist(),
        "length": 4.8,
        "width": 1.9,
        "height": 1.6,
    }


def waymo_json() -> dict[str, Any]:
    """The recording car (7), a car behind it (8), one that comes late (9), an oncoming one (10), a walker (11)."""
    rows = {
        7: ("vehicle", track(20, -1.8, 8.0)),
        8: ("vehicle", track(5, -1.8, 8.0)),
        9: ("vehicle", track(60, -5.4, 5.0, seen=slice(40, None))),
        10: ("vehicle", track(190, 1.8, 6.0, heading=np.pi)),
        11: ("pedestrian", track(92, -8.0, 0.0)),
    }
    return {
        "name": "made",
        "scenario_id": "made",
        "objects": [{**row, "id": key, "type": kind} for key, (kind, row) in rows.items()],
        "roads": [
            {"id": key, "type": kind, "map_element_id": 2, "geometry": xyz(points)}
            for key, (kind, points) in ROADS.items()
        ],
        "tl_states": {"2": {"state": ["go", "stop"], "time_index": [0, 30], "x": [100.0] * 2, "y": [-1.8] * 2}},
        "metadata": {"sdc_track_index": 0},
    }


def scenarionet() -> dict[str, Any]:
    """The same log as a ScenarioNet dict."""
    log = waymo_json()
    tracks = {}
    for one in log["objects"]:
        tracks[str(one["id"])] = {
            "type": {"vehicle": "VEHICLE", "pedestrian": "PEDESTRIAN"}[one["type"]],
            "state": {
                "position": np.array([(p["x"], p["y"], 0.0) for p in one["position"]]),
                "velocity": np.array([(v["x"], v["y"]) for v in one["velocity"]]),
                "heading": np.array(one["heading"]),
                "valid": np.array(one["valid"]),
                **{name: np.full((FRAMES, 1), one[name]) for name in ("length", "width", "height")},
            },
        }
    types = {
        "lane": "LANE_SURFACE_STREET",
        "road_line": "ROAD_LINE_SOLID_SINGLE_WHITE",
        "road_edge": "ROAD_EDGE_BOUNDARY",
        "crosswalk": "CROSSWALK",
    }
    features = {str(k): {"type": types[kind], "polyline": points} for k, (kind, points) in ROADS.items()}
    features["1"] |= {"exit_lanes": [2, 3], "speed_limit_mph": 25.0}
    return {
        "id": "made",
        "metadata": {"sdc_id": "7", "dataset": "waymo", "ts": np.arange(FRAMES) * 0.1},
        "tracks": tracks,
        "map_features": features,
        "dynamic_map_states": {"2": {"lane": 2, "state": {"object_state": ["LANE_STATE_GO"] * 30 + [None] * 61}}},
    }
