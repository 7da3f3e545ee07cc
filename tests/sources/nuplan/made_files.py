"""Small logs and maps in the layout of nuPlan: a straight road of two lanes with a light, driven at 5 m/s for 2 min."""

from __future__ import annotations

import hashlib
import math
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import shapely

X0, Y0, EPSG = 330_000.0, 4_690_000.0, "epsg:32619"
T0_US, PERIOD_US = 1_620_000_000_000_000, 50_000
FRAMES, SCENES = 2400, 6  # of 20 s each; the middle two can be used
SPEED = 5.0
CITY = "us-ma-boston"
CATEGORIES = ("vehicle", "pedestrian", "bicycle", "traffic_cone", "barrier", "czone_sign", "generic_object")
OBJECTS = (("cone", "traffic_cone", 30.0, 9.0), ("car", "vehicle", 20.0, 3.0), ("walker", "pedestrian", 40.0, 8.0))
TABLES = {
    "log": "token BLOB, map_version TEXT",
    "lidar": "token BLOB, log_token BLOB, channel TEXT",
    "lidar_pc": "token BLOB, ego_pose_token BLOB, lidar_token BLOB, scene_token BLOB, timestamp INTEGER",
    "ego_pose": "token BLOB, x FLOAT, y FLOAT, qw FLOAT, qx FLOAT, qy FLOAT, qz FLOAT, vx FLOAT, vy FLOAT, "
    "acceleration_x FLOAT, acceleration_y FLOAT",
    "scene": "token BLOB, name TEXT, goal_ego_pose_token BLOB, roadblock_ids TEXT",
    "scenario_tag": "token BLOB, lidar_pc_token BLOB, type TEXT",
    "track": "token BLOB, category_token BLOB",
    "category": "token BLOB, name TEXT",
    "lidar_box": "lidar_pc_token BLOB, track_token BLOB, x FLOAT, y FLOAT, yaw FLOAT, vx FLOAT, vy FLOAT, "
    "length FLOAT, width FLOAT, height FLOAT",
    "traffic_light_status": "lidar_pc_token BLOB, lane_connector_id INTEGER, status TEXT",
}


def blob(name: str) -> bytes:
    return hashlib.blake2b(name.encode(), digest_size=8).digest()


def frame_token(log: str, frame: int) -> str:
    return blob(f"{log} frame {frame}").hex()


def make_log(
    path: Path,
    tags: Sequence[tuple[int, str]],
    map_name: str = CITY,
    goals: bool = True,
    box_step: int = 1,
    speeds: np.ndarray | None = None,
) -> Path:
    """A log with tags (frame, type); boxes in every `box_step`-th frame; `speeds` (FRAMES,) instead of 5 m/s."""
    name = path.stem
    rows: dict[str, list[tuple[Any, ...]]] = {table: [] for table in TABLES}
    rows["log"] = [(blob("log"), map_name)]
    rows["lidar"] = [(blob("lidar"), blob("log"), "MergedPointCloud"), (blob("other"), blob("log"), "Top")]
    rows["category"] = [(blob(c), c) for c in CATEGORIES]
    rows["track"] = [(blob(thing), blob(category)) for thing, category, _, _ in OBJECTS]
    for k in range(SCENES):
        goal = blob(f"{name} pose {FRAMES - 1}") if goals else b""
        rows["scene"].append((blob(f"{name} scene {k}"), f"scene-{k:03d}", goal, "10 30 11"))
    speed = np.full(FRAMES, SPEED) if speeds is None else speeds
    way = np.concatenate(([0.0], np.cumsum(speed[:-1]) * PERIOD_US * 1e-6))
    for f in range(FRAMES):
        token, time_us = blob(f"{name} frame {f}"), T0_US + f * PERIOD_US
        scene = blob(f"{name} scene {f * SCENES // FRAMES}")
        rows["lidar_pc"].append((token, blob(f"{name} pose {f}"), blob("lidar"), scene, time_us))
        rows["lidar_pc"].append((blob(f"{name} top {f}"), blob(f"{name} pose {f}"), blob("other"), scene, time_us + 7))
        pose = (X0 + 5.0 + way[f], Y0 + 3.0)
        rows["ego_pose"].append((blob(f"{name} pose {f}"), *pose, 1.0, 0.0, 0.0, 0.0, speed[f], 0.0, 0.0, 0.1))
        rows["traffic_light_status"].append((token, 301, "red" if f < FRAMES // 2 else "dark"))
        if f % box_step == 0:
            for thing, _, x, y in OBJECTS:
                moved = way[f] if thing == "car" else 0.0
                vx = None if thing == "walker" else 4.0
                rows["lidar_box"].append((token, blob(thing), X0 + x + moved, Y0 + y, 0.0, vx, 0.0, 4.5, 1.9, 1.6))
    for frame, kind in tags:
        rows["scenario_tag"].append((blob(f"{name} tag {frame} {kind}"), blob(f"{name} frame {frame}"), kind))
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as connection:
        for table, columns in TABLES.items():
            connection.execute(f"CREATE TABLE {table} ({columns})")
            marks = ",".join("?" * (columns.count(",") + 1))
            connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows[table])
        connection.execute("CREATE INDEX boxes_of_frames ON lidar_box (lidar_pc_token)")
    connection.close()
    return path


LANES = {  # id: roadblock, index, from x, to x, y of the centre
    101: (10, 1, 0.0, 100.0, 6.5), 102: (10, 2, 0.0, 100.0, 3.0),
    111: (11, 1, 120.0, 800.0, 6.5), 112: (11, 2, 120.0, 800.0, 3.0), 901: (90, 1, 5000.0, 5100.0, 3.0),
}  # fmt: skip
CONNECTORS = {302: (30, 102, 112, 3.0), 301: (30, 101, 111, 6.5)}  # id: roadblock, from, to, y


def _box(x0: float, x1: float, y0: float, y1: float) -> shapely.Polygon:
    return shapely.box(x0, y0, x1, y1)


def _line(x0: float, x1: float, y: float, backwards: bool = False) -> shapely.LineString:
    points = [(x, y) for x in np.linspace(x0, x1, max(2, math.ceil((x1 - x0) / 10.0)))]
    return shapely.LineString(points[::-1] if backwards else points)


def make_map(maps: Path, empty: tuple[str, int] | None = None, without: str = "", city: str = CITY) -> Path:
    """MAPS/CITY/1/map.gpkg. `empty`: (layer, id) of a row that gets an empty geometry; `without`: a missing layer."""
    areas = [(key, x0, x1, y) for key, (_, _, x0, x1, y) in LANES.items()]
    joints = [(key, 100.0, 120.0, y) for key, (_, _, _, y) in CONNECTORS.items()]
    everything = areas + joints
    borders = [(10 * key + side, _line(x0, x1, y + offset, backwards=side == 2)) for key, x0, x1, y in everything
               for side, offset in ((1, 1.75), (2, -1.75))]  # fmt: skip
    layers: dict[str, tuple[list[int], list[Any], dict[str, list[Any]]]] = {
        "lanes_polygons": ([a[0] for a in areas], [_box(a[1], a[2], a[3] - 1.75, a[3] + 1.75) for a in areas], {
            "lane_group_fid": [LANES[a[0]][0] for a in areas], "lane_index": [LANES[a[0]][1] for a in areas],
            "left_boundary_fid": [10 * a[0] + 1 for a in areas], "right_boundary_fid": [10 * a[0] + 2 for a in areas],
            "speed_limit_mps": [None if a[0] == 111 else 13.4 for a in areas]}),
        "lane_connectors": ([301, 302], [_line(100.0, 120.0, y) for y in (6.5, 3.0)], {
            "exit_lane_fid": [101, 102], "entry_lane_fid": [111, 112], "lane_group_connector_fid": [30, 30],
            "speed_limit_mps": [None, None], "traffic_light_stop_line_fids": ["70", ""]}),
        "gen_lane_connectors_scaled_width_polygons": ([1, 2],
            [_box(100.0, 120.0, j[3] - 1.75, j[3] + 1.75) for j in joints], {
            "lane_connector_fid": [j[0] for j in joints], "left_boundary_fid": [10 * j[0] + 1 for j in joints],
            "right_boundary_fid": [10 * j[0] + 2 for j in joints]}),
        "baseline_paths": ([5000 + e[0] for e in everything], [_line(*e[1:]) for e in everything], {
            "lane_fid": [e[0] if e in areas else None for e in everything],
            "lane_connector_fid": [e[0] if e in joints else None for e in everything]}),
        "boundaries": ([b[0] for b in borders], [b[1] for b in borders], {}),
        "lane_groups_polygons": ([10, 11, 90], [_box(0.0, 100.0, 1.25, 8.25), _box(120.0, 800.0, 1.25, 8.25),
                                                _box(5000.0, 5100.0, 1.25, 4.75)], {}),
        "lane_group_connectors": ([30], [_box(100.0, 120.0, 1.25, 8.25)], {}),
        "intersections": ([50], [_box(100.0, 120.0, 0.0, 10.0)], {}),
        "stop_polygons": ([70], [_box(98.0, 100.0, 4.75, 8.25)], {"stop_polygon_type_fid": [2]}),
        "road_segments": ([], [], {}),
        "generic_drivable_areas": ([60, 61], [_box(0.0, 100.0, 0.0, 10.0), _box(120.0, 800.0, 0.0, 10.0)], {}),
        "carpark_areas": ([62], [_box(0.0, 30.0, 10.0, 20.0)], {}),
    }  # fmt: skip
    path = maps / city / "1" / "map.gpkg"
    path.parent.mkdir(parents=True, exist_ok=True)
    for name, (ids, shapes, columns) in layers.items():
        if name != without:
            if empty is not None and empty[0] == name:
                shapes[ids.index(empty[1])] = type(shapes[0])()
            _write(path, name, ids, shapes, columns)
    meta = [np.array([text], dtype=object) for text in ("projectedCoordSystem", EPSG)]
    _raw().write(path, None, meta, ["key", "value"], layer="meta", driver="GPKG", geometry_type=None, append=True)
    return path


def _raw() -> Any:
    from pyogrio import raw

    return raw


def _write(path: Path, name: str, ids: list[int], shapes: list[Any], columns: dict[str, list[Any]]) -> None:
    import pyproj

    to_degrees = pyproj.Transformer.from_crs(EPSG, "EPSG:4326", always_xy=True)
    geometry = np.array(shapes, dtype=object)
    points = shapely.get_coordinates(geometry) + np.array([X0, Y0])
    if len(points):
        geometry = shapely.set_coordinates(geometry, np.stack(to_degrees.transform(*points.T), -1))
    values = [_column(column) for column in columns.values()]
    kind = "LineString" if shapes and shapes[0].geom_type == "LineString" else "Polygon"
    _raw().write(
        path, shapely.to_wkb(geometry), [np.array(ids, dtype=np.int64), *values], ["fid", *columns], layer=name,
        driver="GPKG", geometry_type=kind, crs="EPSG:4326", append=path.exists(),
    )  # fmt: skip


def _column(values: list[Any]) -> np.ndarray:
    if any(isinstance(value, str) for value in values):
        return np.array(values, dtype=object)
    if None in values:
        return np.array([math.nan if value is None else float(value) for value in values])
    return np.array(values)
