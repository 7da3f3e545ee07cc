"""Scenarios and road maps as rows of the Arrow files of a store. What they hold is described in docs/store.md."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from radp.road.road_map import RoadMap
from radp.runs.manifest import Manifest
from radp.scenario.scenario import Scenario, Tracks, TrafficLights
from radp.storage.codec import LEVEL, CodecError
from radp.storage.errors import StoreError
from radp.storage.records import from_bytes, to_bytes
from radp.storage.tables import ArrowTable

FORMAT, VERSION = "radp-scenarios", 1
MANIFEST = "manifest.json"
STORE = Manifest(MANIFEST, FORMAT, VERSION, "scenario store", StoreError)
SCENARIOS = pa.schema(
    [
        ("token", pa.string()),
        ("kind", pa.string()),
        ("source", pa.string()),
        ("map", pa.string()),
        ("frames", pa.int32()),
        ("start", pa.int32()),
        ("tracks", pa.int32()),
        ("dt", pa.float64()),
        ("tags", pa.map_(pa.string(), pa.string())),
        ("data", pa.binary()),
    ]
)
MAPS = pa.schema([("map", pa.string()), ("name", pa.string()), ("lanes", pa.int32()), ("data", pa.binary())])
TABLES = {
    "maps": ArrowTable(f"{FORMAT}/maps", VERSION, MAPS),
    "scenarios": ArrowTable(f"{FORMAT}/scenarios", VERSION, SCENARIOS),
}


@dataclass(frozen=True)
class _Data:
    """What of a scenario stands in its column `data`."""

    time_us: np.ndarray
    ego: np.ndarray
    route: tuple[str, ...]
    goal: np.ndarray | None
    tracks: Tracks
    lights: TrafficLights


DATA_FIELDS = tuple(field.name for field in fields(_Data))


def scenario_row(scenario: Scenario, map_key: str, level: int = LEVEL) -> dict[str, Any]:
    """A row of a scenario shard."""
    return {
        "token": scenario.token,
        "kind": scenario.kind,
        "source": scenario.source,
        "map": map_key,
        "frames": scenario.frames,
        "start": scenario.start,
        "tracks": len(scenario.tracks),
        "dt": float(scenario.dt),
        "tags": list(scenario.tags.items()),
        "data": to_bytes(_Data(*(getattr(scenario, name) for name in DATA_FIELDS)), level),
    }


def scenario_from_row(batch: pa.RecordBatch, row: int, road_map: RoadMap, file: Path) -> Scenario:
    """Decode one row; `file` stands in error messages."""
    index = {name: batch[name][row].as_py() for name in ("token", "kind", "source", "start", "dt", "tags")}
    try:
        data = from_bytes(_Data, batch["data"][row].as_buffer())
        decoded = {name: getattr(data, name) for name in DATA_FIELDS}
        scenario = Scenario(**{**index, "tags": dict(index["tags"] or ())}, **decoded, map=road_map)
        scenario.validate_log()  # the map was checked when it was read
    except ValueError as error:
        raise StoreError(f"{file}: scenario {index['token']!r} cannot be read ({error})") from None
    return scenario


def map_row(road_map: RoadMap, map_key: str, level: int = LEVEL) -> dict[str, Any]:
    """A row of a map shard."""
    return {"map": map_key, "name": road_map.name, "lanes": len(road_map), "data": to_bytes(road_map, level)}


def map_from_row(batch: pa.RecordBatch, row: int, file: Path) -> RoadMap:
    """Decode one row; `file` stands in error messages."""
    try:
        return from_bytes(RoadMap, batch["data"][row].as_buffer())
    except CodecError as error:
        raise StoreError(f"{file}: road map {batch['map'][row].as_py()!r} cannot be read ({error})") from None


def read_shards(folder: Path, manifest: dict[str, Any]) -> list[dict[str, Any]]:
    """{"scenarios": {"file", "rows"}, "maps": the same or null} of each shard; StoreError if they are anything else."""
    shards = manifest.get("shards")
    if not isinstance(shards, list) or not all(map(_is_shard, shards)):
        raise StoreError(f"{folder / MANIFEST} is damaged: its list of shards cannot be used")
    return shards


def _is_shard(shard: Any) -> bool:
    """With plain file names that stay in the folder."""
    if not isinstance(shard, dict) or shard.get("scenarios") is None:
        return False
    return all(
        isinstance(part, dict)
        and isinstance(part.get("file"), str)
        and part["file"] not in ("", ".", "..")
        and Path(part["file"]).name == part["file"]
        and isinstance(part.get("rows"), int)
        for part in (shard.get(name) for name in TABLES)
        if part is not None
    )
