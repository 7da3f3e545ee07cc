"""Shards: the Arrow files of a store, and its manifest. What they hold is described in docs/store.md."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa

from radp.road.road_map import RoadMap
from radp.runs.errors import BadInput
from radp.runs.files import atomic_path
from radp.scenario.scenario import Scenario, Tracks, TrafficLights
from radp.storage.codec import LEVEL, CodecError, decode_array, decode_strings, encode_array, encode_strings
from radp.storage.records import decode_fields, encode_fields, pack_blobs, unpack_blobs

FORMAT = "radp-scenarios"
VERSION = 1
MANIFEST = "manifest.json"
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
SCHEMAS = {"scenarios": SCENARIOS, "maps": MAPS}


class StoreError(BadInput):
    """A store or one of its files cannot be used; the message is one sentence that names the file."""


def scenario_row(scenario: Scenario, map_key: str, level: int = LEVEL) -> dict[str, Any]:
    """A row of a scenario shard."""
    goal = scenario.goal
    blobs = {
        "time_us": encode_array(scenario.time_us),
        "ego": encode_array(scenario.ego, level),
        "route": encode_strings(scenario.route),
        "goal": b"" if goal is None else encode_array(goal),
        **{f"tracks.{name}": blob for name, blob in encode_fields(scenario.tracks, level).items()},
        **{f"lights.{name}": blob for name, blob in encode_fields(scenario.lights, level).items()},
    }
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
        "data": pack_blobs(blobs),
    }


def scenario_from_row(batch: pa.RecordBatch, row: int, road_map: RoadMap, file: str) -> Scenario:
    """Decode one row; `file` stands in error messages."""
    index = {name: batch[name][row].as_py() for name in ("token", "kind", "source", "start", "dt", "tags")}
    try:
        blobs = unpack_blobs(batch["data"][row].as_buffer())
        return Scenario(
            **{**index, "tags": dict(index["tags"])},
            map=road_map,
            time_us=decode_array(blobs["time_us"]),
            ego=decode_array(blobs["ego"]),
            route=decode_strings(blobs["route"]),
            goal=decode_array(blobs["goal"]) if len(blobs["goal"]) else None,
            tracks=decode_fields(Tracks, blobs, "tracks."),
            lights=decode_fields(TrafficLights, blobs, "lights."),
        )
    except (CodecError, KeyError) as error:
        raise StoreError(f"{file}: scenario {index['token']!r} cannot be read ({error})") from None


def map_row(road_map: RoadMap, map_key: str, level: int = LEVEL) -> dict[str, Any]:
    """A row of a map shard."""
    data = pack_blobs(encode_fields(road_map, level))
    return {"map": map_key, "name": road_map.name, "lanes": len(road_map), "data": data}


def map_from_row(batch: pa.RecordBatch, row: int, file: str) -> RoadMap:
    """Decode one row; `file` stands in error messages."""
    try:
        return decode_fields(RoadMap, unpack_blobs(batch["data"][row].as_buffer()))
    except CodecError as error:
        raise StoreError(f"{file}: road map {batch['map'][row].as_py()!r} cannot be read ({error})") from None


def write_shard(path: Path, part: str, rows: Sequence[Mapping[str, Any]]) -> None:
    """Write rows as one record batch, atomically. The same rows give the same bytes."""
    metadata = {"radp.format": f"{FORMAT}/{part}", "radp.version": str(VERSION)}
    schema = SCHEMAS[part].with_metadata(metadata)
    columns = [pa.array([row[field.name] for row in rows], field.type) for field in schema]
    with atomic_path(path) as temporary, pa.OSFile(str(temporary), "wb") as sink, pa.ipc.new_file(sink, schema) as out:
        out.write_batch(pa.record_batch(columns, schema=schema))


def open_shard(path: Path, part: str, rows: int | None = None) -> pa.RecordBatch:
    """Memory-map a shard; StoreError if it is missing, cut short, foreign, of another version or not `rows` long."""
    try:
        reader = pa.ipc.open_file(pa.memory_map(str(path)))
        metadata = {
            key.decode(): value.decode("utf-8", "replace") for key, value in (reader.schema.metadata or {}).items()
        }
        if metadata.get("radp.format") != f"{FORMAT}/{part}":
            raise StoreError(f"{path} is an Arrow file, but not a shard of {part} of radp")
        if metadata.get("radp.version") != str(VERSION):
            raise StoreError(f"{path} has version {metadata.get('radp.version')}; this radp reads version {VERSION}")
        if not reader.schema.equals(SCHEMAS[part]) or reader.num_record_batches != 1:
            raise StoreError(f"{path} does not have the columns of a shard of {part}")
        batch = reader.get_batch(0)
        batch.validate(full=True)
    except FileNotFoundError:
        raise StoreError(f"{path} is missing") from None
    except (OSError, UnicodeDecodeError, pa.ArrowException) as error:
        raise StoreError(f"{path} is not a readable Arrow file, it may be cut short ({_first_line(error)})") from None
    if rows is not None and batch.num_rows != rows:
        raise StoreError(f"{path} holds {batch.num_rows} rows where the manifest says {rows}")
    return batch


def _first_line(error: Exception) -> str:
    return str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a store; StoreError names the file and what is wrong with it."""
    file = folder / MANIFEST
    try:
        manifest = json.loads(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise StoreError(f"{folder} is not a scenario store: {MANIFEST} is missing") from None
    except (OSError, ValueError, RecursionError) as error:
        raise StoreError(f"{file} is not readable JSON ({_first_line(error)})") from None
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise StoreError(f"{file} does not describe a scenario store of radp")
    if manifest.get("version") != VERSION:
        raise StoreError(f"{file} has version {manifest.get('version')!r}; this radp reads version {VERSION}")
    shards = manifest.get("shards")
    if not isinstance(shards, list) or not all(_is_shard(shard) for shard in shards):
        raise StoreError(f"{file} is damaged: its list of shards cannot be used")
    return manifest


def _is_shard(shard: Any) -> bool:
    """{"scenarios": {"file", "rows"}, "maps": the same or null}, with plain file names that stay in the folder."""
    if not isinstance(shard, dict) or shard.get("scenarios") is None:
        return False
    parts = [shard[part] for part in SCHEMAS if shard.get(part) is not None]
    return all(
        isinstance(part, dict)
        and isinstance(part.get("file"), str)
        and part["file"] not in ("", ".", "..")
        and Path(part["file"]).name == part["file"]
        and isinstance(part.get("rows"), int)
        for part in parts
    )
