"""Argoverse 2 logs: sensor logs (boxes in the ego frame, 10 Hz) and motion forecasting scenarios (points, 11 s).

Neither knows speed limits, lights or a route; forecasting scenarios have no sizes, sensor logs no velocities.
The pose of the ego is that of its rear axle.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from radp.scenario import DT_US, Box, ObjectType, Tracks
from radp.scenario.recording import Recording, no_lights, usual_start
from radp.sources.argoverse.categories import EGO_SIZE, EGO_TO_CENTER, FORECASTING, SENSOR
from radp.sources.argoverse.road import read_road
from radp.sources.convert import REBUILT, UNKNOWN, FileItem, SourceError
from radp.sources.limits import MOST_BOXES, MOST_BYTES
from radp.sources.log_files import find_logs, reading
from radp.sources.motion import at_center, differentiate
from radp.sources.roads import BuiltRoad
from radp.sources.settings import LogChoice
from radp.sources.sound import room_for
from radp.storage.foreign_tables import plain_column, read_foreign_table

POSES = "city_SE3_egovehicle.feather"
TEXTS = ("track_uuid", "category", "track_id", "object_type")  # columns of text; all others hold numbers
EGO = "AV"


@dataclass(frozen=True)
class Argoverse:
    """Source of both kinds: folders with poses and annotations, and scenario_*.parquet files."""

    name: str = "argoverse"

    def items(self, options: LogChoice) -> list[FileItem]:
        found = find_logs(options, (POSES, ".parquet"), lambda p: p.name == POSES or p.name.startswith("scenario_"))
        return [replace(item, name=item.name.removesuffix(f"/{POSES}")) for item in found]

    def scenarios(self, item: FileItem) -> Iterator[Recording]:
        with reading(item.name, "log"):
            log = read_sensor_log(item.path.parent) if item.path.name == POSES else read_forecasting(item.path)
        yield log


ARGOVERSE = Argoverse()


def read_table(path: Path, columns: tuple[str, ...]) -> dict[str, np.ndarray]:
    """Columns of an Arrow file; SourceError where it is broken, too large or lacks one of them."""
    try:
        table = read_foreign_table(path, columns, MOST_BOXES, MOST_BYTES)
        missing = [column for column in columns if column not in table.column_names]
        if missing:
            raise SourceError(f"{path.name}: column '{missing[0]}' is missing")
        if not table.num_rows:
            raise SourceError(f"{path.name}: it has no rows")
        return {column: column_of(table, column) for column in columns}
    except SourceError:
        raise
    except (OSError, ValueError, KeyError, MemoryError, pa.ArrowException) as error:
        raise SourceError(f"{path.name}: the file cannot be read ({' '.join(str(error).split())[:200]})") from None


def column_of(table: pa.Table, column: str) -> np.ndarray:
    """(N,) numbers or texts, none missing."""
    values = plain_column(table, column)
    if column in TEXTS:
        texts = values.cast(pa.string())
        if texts.null_count:
            raise ValueError(f"column '{column}' has rows without a value")
        return np.array(texts.to_pylist(), dtype=object)
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)) or values.null_count:
        raise ValueError(f"column '{column}' holds something else than numbers")
    return values.to_numpy()


def find_map(folders: tuple[Path, ...]) -> BuiltRoad:
    maps = [file for folder in folders for file in sorted(folder.glob("log_map_archive_*.json"))]
    if not maps:
        raise SourceError(f"{folders[0]}: log_map_archive_*.json is missing")
    return read_road(maps[0])


def read_sensor_log(folder: Path) -> Recording:
    """One log folder; SourceError names what is wrong with it."""
    tables = sorted(folder.glob("annotations*.feather"))
    if not tables:
        raise SourceError(f"{folder.name}: annotations.feather is missing")
    pose = ("timestamp_ns", "qw", "qx", "qy", "qz", "tx_m", "ty_m")
    poses = read_table(folder / POSES, pose)
    boxes = read_table(tables[0], (*pose, "track_uuid", "category", "length_m", "width_m", "height_m"))
    road = find_map((folder / "map", folder))
    with reading(folder.name, "annotations"):
        for name, column in (*poses.items(), *boxes.items()):
            if name not in TEXTS and not np.isfinite(column).all():
                raise ValueError(f"column '{name}' holds a value that is not finite")
        stamps, frame = np.unique(boxes["timestamp_ns"].astype(np.int64), return_inverse=True)
        ego = ego_at(stamps, poses)
        tracks = sensor_tracks(boxes, frame, ego, (stamps - stamps[0]) / 1e9)
    return _recording(folder.name, "argoverse-sensor", road, (stamps - stamps[0]) // 1000, tracks, ())


def yaw_of(table: dict[str, np.ndarray]) -> np.ndarray:
    """Heading (N,) of unit quaternions."""
    qw, qx, qy, qz = (table[name].astype(np.float64) for name in ("qw", "qx", "qy", "qz"))
    return np.arctan2(2 * (qw * qz + qx * qy), 1 - 2 * (qy * qy + qz * qz))


def ego_at(stamps: np.ndarray, poses: dict[str, np.ndarray]) -> np.ndarray:
    """(T, 3) x, y, heading of the rear axle in the city, between the poses on both sides."""
    order = np.argsort(poses["timestamp_ns"], kind="stable")
    time = poses["timestamp_ns"][order] - stamps[0]
    columns = (poses["tx_m"][order], poses["ty_m"][order], np.unwrap(yaw_of(poses)[order]))
    return np.stack([np.interp(stamps - stamps[0], time, column) for column in columns], axis=1)


def sensor_tracks(rows: dict[str, np.ndarray], frame: np.ndarray, ego: np.ndarray, seconds: np.ndarray) -> Tracks:
    """All tracks in the city frame; the ego is the first."""
    others = rows["category"] != "EGO_VEHICLE"
    rows, frame = {name: column[others] for name, column in rows.items()}, frame[others]
    names, track = np.unique(rows["track_uuid"].astype(str), return_inverse=True)
    room_for(len(names) + 1, len(ego))
    state, valid = np.zeros((len(names) + 1, len(ego), 5)), np.zeros((len(names) + 1, len(ego)), dtype=bool)
    heading = ego[frame, 2]
    c, s = np.cos(heading), np.sin(heading)
    state[track + 1, frame, Box.X] = ego[frame, 0] + c * rows["tx_m"] - s * rows["ty_m"]
    state[track + 1, frame, Box.Y] = ego[frame, 1] + s * rows["tx_m"] + c * rows["ty_m"]
    state[track + 1, frame, Box.HEADING] = heading + yaw_of(rows)
    valid[track + 1, frame] = True
    state[0, :, :3], valid[0] = ego, True
    at_center(state[0], EGO_TO_CENTER)
    for boxes, seen in zip(state, valid):
        differentiate(boxes, seen, seconds)
    size, kinds = np.zeros((len(names) + 1, 3)), np.zeros(len(names) + 1, dtype=np.uint8)
    size[0], kinds[0] = EGO_SIZE, ObjectType.VEHICLE
    size[track + 1] = np.stack([rows[name] for name in ("length_m", "width_m", "height_m")], axis=1)
    kinds[track + 1] = [SENSOR.get(word, ObjectType.GENERIC_OBJECT) for word in rows["category"]]
    return Tracks((EGO, *names.tolist()), kinds, size, state, valid)


def read_forecasting(path: Path) -> Recording:
    """One scenario; sizes are the usual ones of each type."""
    columns = ("track_id", "object_type", "timestep", "position_x", "position_y", "heading", "velocity_x", "velocity_y")
    rows = read_table(path, columns)
    road = find_map((path.parent,))
    with reading(path.name, "rows"):
        names, track = np.unique(rows["track_id"].astype(str), return_inverse=True)
        frame = rows["timestep"].astype(np.int64)
        if frame.min() < 0:
            raise ValueError(f"a timestep is {frame.min()}, expected 0 or more")
        room_for(len(names), int(frame.max()) + 1)
        state, valid = np.zeros((len(names), frame.max() + 1, 5)), np.zeros((len(names), frame.max() + 1), dtype=bool)
        table = np.stack([rows[column] for column in columns[3:]], axis=1).astype(np.float64)
        sound = np.isfinite(table).all(axis=1)
        state[track[sound], frame[sound]], valid[track[sound], frame[sound]] = table[sound], True
        known = [FORECASTING.get(word, FORECASTING["unknown"]) for word in rows["object_type"]]
        kinds, size = np.zeros(len(names), dtype=np.uint8), np.zeros((len(names), 3))
        kinds[track], size[track] = [kind for kind, _ in known], [one for _, one in known]
        if EGO in names:
            ego = names.tolist().index(EGO)
            at_center(state[ego], EGO_TO_CENTER)
            state[ego, ~valid[ego]], size[ego] = 0.0, EGO_SIZE
    tracks = Tracks(tuple(names.tolist()), kinds, size, state, valid)
    time_us = np.arange(state.shape[1], dtype=np.int64) * DT_US
    name = path.name.removeprefix("scenario_").split(".")[0]
    return _recording(name, "argoverse-forecasting", road, time_us, tracks, ("object sizes",))


def _recording(
    token: str, source: str, road: BuiltRoad, time_us: np.ndarray, tracks: Tracks, rebuilt: tuple[str, ...]
) -> Recording:
    words: dict[str, Any] = {REBUILT: (*road.rebuilt, *rebuilt, "route"), UNKNOWN: (*road.unknown, "traffic lights")}
    return Recording(
        token=token,
        source=source,
        map=road.map,
        time_us=time_us,
        tracks=tracks,
        lights=no_lights(len(time_us)),
        sdc=EGO if EGO in tracks.ids else None,
        start=usual_start(len(time_us)),
        tags={tag: ", ".join(names) for tag, names in words.items()},
    )
