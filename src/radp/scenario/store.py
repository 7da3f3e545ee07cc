"""The store: scenarios in Arrow shards, each road map once, and a manifest that is written last.

    manifest.json            the list of shards
    scenarios-00000.arrow    one row per scenario: index columns and its encoded arrays
    maps-00000.arrow         the road maps that appear first in that shard, by the hash of their content

Files are memory-mapped; a scenario is decoded when it is asked for. A shard that cannot be read costs its own scenarios
only. docs/store.md describes the files.
"""

from __future__ import annotations

import os
from collections import Counter, OrderedDict
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, overload

import pyarrow as pa

from radp.road.road_map import RoadMap
from radp.runs.files import remove_temporaries, write_json_atomically
from radp.scenario.scenario import Scenario
from radp.scenario.shards import (
    FORMAT,
    MANIFEST,
    VERSION,
    StoreError,
    map_from_row,
    map_row,
    open_shard,
    read_manifest,
    scenario_from_row,
    scenario_row,
    write_shard,
)
from radp.storage.codec import LEVEL
from radp.storage.records import content_hash

__all__ = [
    "EncodedScenarios",
    "Entry",
    "ScenarioStore",
    "ScenarioWriter",
    "Selection",
    "StoreError",
    "encode_scenarios",
]

ROWS_PER_SHARD = 512
MAPS_KEPT = 8


@dataclass(frozen=True)
class Entry:
    """What the index knows of a scenario without decoding it."""

    token: str
    kind: str
    source: str
    map: str  # key of the road map
    frames: int  # N: frames of the drive
    start: int  # frames of history before it
    tracks: int
    tags: dict[str, str]


def entries_of(batch: pa.RecordBatch) -> list[Entry]:
    """The index columns of a shard."""
    columns = {field.name: batch[field.name].to_pylist() for field in fields(Entry)}
    columns["tags"] = [dict(pairs) for pairs in columns["tags"]]
    return [Entry(**dict(zip(columns, values))) for values in zip(*columns.values())]


class ScenarioStore(Sequence[Scenario]):
    """N readable scenarios, by position or token, in the order of writing.

    Scenarios of one map share its RoadMap object while it is remembered. `problems` has one sentence per broken file.
    """

    def __init__(self, path: Path, maps_kept: int = MAPS_KEPT) -> None:
        self.path, self.maps_kept = path, maps_kept
        self.problems: list[str] = []
        self._entries: list[Entry] = []
        self._rows: list[tuple[pa.RecordBatch, int, Path]] = []
        self._map_rows: dict[str, tuple[pa.RecordBatch, int, Path]] = {}
        self._maps: OrderedDict[str, RoadMap] = OrderedDict()
        for shard in read_manifest(path)["shards"]:
            self._open(shard)
        self._position = {entry.token: i for i, entry in enumerate(self._entries)}

    @classmethod
    def open(cls, path: Path | str, maps_kept: int = MAPS_KEPT) -> ScenarioStore:
        """The store in a folder; StoreError if there is none."""
        return cls(Path(path), maps_kept)

    def _open(self, shard: dict[str, Any]) -> None:
        for part in ("maps", "scenarios"):
            if shard.get(part) is None:
                continue
            file = self.path / shard[part]["file"]
            try:
                batch = open_shard(file, part, shard[part]["rows"])
            except StoreError as error:
                self.problems.append(str(error))
                continue
            if part == "maps":
                self._map_rows.update({key: (batch, row, file) for row, key in enumerate(batch["map"].to_pylist())})
            else:
                self._entries += entries_of(batch)
                self._rows += [(batch, row, file) for row in range(batch.num_rows)]

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, key: int | str) -> Scenario: ...
    @overload
    def __getitem__(self, key: slice) -> Selection: ...
    def __getitem__(self, key: int | str | slice) -> Scenario | Selection:
        """By position, by token, or a lazy selection by slice."""
        if isinstance(key, slice):
            return Selection(self, range(len(self))[key])
        index = self.position(key) if isinstance(key, str) else range(len(self))[key]
        batch, row, file = self._rows[index]
        return scenario_from_row(batch, row, self.road_map(self._entries[index].map), str(file))

    def position(self, token: str) -> int:
        """Where a token stands; StoreError if it is unknown or lies in a broken shard."""
        if token not in self._position:
            broken = f" among its readable files: {'; '.join(self.problems)}" if self.problems else ""
            raise StoreError(f"{self.path} holds no scenario {token!r}{broken}")
        return self._position[token]

    def road_map(self, key: str) -> RoadMap:
        """A map by its key; the last few are remembered."""
        if key not in self._maps:
            if key not in self._map_rows:
                broken = "; ".join(self.problems) or "no shard lists it"
                raise StoreError(f"{self.path}: the road map {key} cannot be read ({broken})")
            batch, row, file = self._map_rows[key]
            self._maps[key] = map_from_row(batch, row, str(file))
            while len(self._maps) > max(self.maps_kept, 1):
                self._maps.popitem(last=False)
        self._maps.move_to_end(key)
        return self._maps[key]

    def map_keys(self) -> list[str]:
        return list(self._map_rows)

    def entries(self) -> tuple[Entry, ...]:
        """The index."""
        return tuple(self._entries)

    def tokens(self) -> list[str]:
        return [entry.token for entry in self._entries]

    def kinds(self) -> dict[str, int]:
        """kind -> number of scenarios, sorted by name."""
        return _count_kinds(self._entries)

    def select(self, indices: Sequence[int]) -> Selection:
        """Some scenarios by position, still lazy."""
        return Selection(self, indices)

    def __contains__(self, token: object) -> bool:
        return token in self._position

    def __iter__(self) -> Iterator[Scenario]:
        return (self[i] for i in range(len(self)))

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process gets the path and maps the files itself."""
        return ScenarioStore, (self.path, self.maps_kept)


class Selection(Sequence[Scenario]):
    """Some of a store's scenarios, still lazy."""

    def __init__(self, store: ScenarioStore, indices: Sequence[int]) -> None:
        self.store, self.indices = store, indices

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, key: int) -> Scenario: ...
    @overload
    def __getitem__(self, key: slice) -> Selection: ...
    def __getitem__(self, key: int | slice) -> Scenario | Selection:
        if isinstance(key, slice):
            return Selection(self.store, self.indices[key])
        return self.store[self.indices[key]]

    def select(self, indices: Sequence[int]) -> Selection:
        """Some of these by position."""
        return Selection(self.store, [self.indices[i] for i in indices])

    def entries(self) -> tuple[Entry, ...]:
        every = self.store.entries()
        return tuple(every[i] for i in self.indices)

    def tokens(self) -> list[str]:
        return [entry.token for entry in self.entries()]

    def kinds(self) -> dict[str, int]:
        return _count_kinds(self.entries())


def _count_kinds(entries: Sequence[Entry]) -> dict[str, int]:
    return dict(sorted(Counter(entry.kind for entry in entries).items()))


@dataclass(frozen=True)
class EncodedScenarios:
    """Rows for a store: small enough to send from the processes that make scenarios to the one that writes them."""

    scenarios: tuple[dict[str, Any], ...]
    maps: dict[str, dict[str, Any]]  # key -> row


def encode_scenarios(
    scenarios: Sequence[Scenario], known_maps: Container[str] = (), level: int = LEVEL
) -> EncodedScenarios:
    """Validate and encode; maps whose keys are known are left out. `level` of zstd: 9 takes half the time of 15."""
    rows, maps = [], {}
    for scenario in scenarios:
        scenario.validate()
        key = content_hash(scenario.map)
        if key not in maps and key not in known_maps:
            maps[key] = _remembered_row(scenario.map, key, level)
        rows.append(scenario_row(scenario, key, level))
    return EncodedScenarios(tuple(rows), maps)


_map_rows: OrderedDict[tuple[str, int], dict[str, Any]] = OrderedDict()


def _remembered_row(road: RoadMap, key: str, level: int) -> dict[str, Any]:
    """Logs that are converted one after the other often share a map, which takes longer to encode than a drive."""
    row = _map_rows.pop((key, level), None) or map_row(road, key, level)
    _map_rows[key, level] = row
    while len(_map_rows) > MAPS_KEPT:
        _map_rows.popitem(last=False)
    return row


class ScenarioWriter:
    """Adds scenarios to a store, new or existing; use it as a context manager.

    Every `rows_per_shard` scenarios a shard is written, then the manifest: what the manifest lists survives a kill.
    A writer that is opened again knows the tokens that are there (`token in writer`) and goes on behind them.
    """

    def __init__(self, path: Path | str, rows_per_shard: int = ROWS_PER_SHARD, level: int = LEVEL) -> None:
        self.path, self.rows_per_shard, self.level = Path(path), rows_per_shard, level
        self.path.mkdir(parents=True, exist_ok=True)
        self._lock = _lock(self.path)
        self._shards: list[dict[str, Any]] = []
        self._tokens: set[str] = set()
        self._map_keys: set[str] = set()
        self._scenarios: list[dict[str, Any]] = []
        self._maps: list[dict[str, Any]] = []
        remove_temporaries(self.path)
        if (self.path / MANIFEST).exists():
            store = ScenarioStore.open(self.path)
            if store.problems:
                raise StoreError(f"nothing can be added to {self.path}: {store.problems[0]}")
            self._shards = read_manifest(self.path)["shards"]
            self._tokens.update(store.tokens())
            self._map_keys.update(store.map_keys())
        else:
            self._write_manifest()

    def __contains__(self, token: object) -> bool:
        return token in self._tokens

    def __len__(self) -> int:
        return len(self._tokens)

    def add(self, scenario: Scenario) -> None:
        """Validate, encode and keep a scenario until its shard is full; a token that is there is refused."""
        self._refuse_known([scenario.token])
        self.add_encoded(encode_scenarios([scenario], self._map_keys, self.level))

    def add_encoded(self, encoded: EncodedScenarios) -> None:
        """Add what `encode_scenarios` made, all of it or (if a token is there already) nothing."""
        self._refuse_known([row["token"] for row in encoded.scenarios])
        for row in encoded.scenarios:
            if row["map"] not in self._map_keys:
                self._maps.append(encoded.maps[row["map"]])
                self._map_keys.add(row["map"])
            self._scenarios.append(row)
            self._tokens.add(row["token"])
            if len(self._scenarios) >= self.rows_per_shard:
                self.flush()

    def _refuse_known(self, tokens: Sequence[str]) -> None:
        repeated = [token for token, count in Counter(tokens).items() if count > 1 or token in self._tokens]
        if repeated:
            raise StoreError(f"{self.path} holds a scenario {repeated[0]!r} already")

    def flush(self) -> None:
        """Write what was added since the last shard: maps, scenarios, then the manifest."""
        if not self._scenarios:
            return
        shard: dict[str, Any] = {}
        for part, rows in (("maps", self._maps), ("scenarios", self._scenarios)):
            name = f"{part}-{len(self._shards):05d}.arrow"
            if rows:
                write_shard(self.path / name, part, rows)
            shard[part] = {"file": name, "rows": len(rows)} if rows else None
        self._shards.append(shard)
        self._write_manifest()
        self._scenarios, self._maps = [], []

    def _write_manifest(self) -> None:
        manifest = {
            "format": FORMAT,
            "version": VERSION,
            "scenarios": sum(shard["scenarios"]["rows"] for shard in self._shards),
            "shards": self._shards,
        }
        write_json_atomically(self.path / MANIFEST, manifest)

    def close(self) -> None:
        self.flush()
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None

    def __enter__(self) -> ScenarioWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What was added is kept even when something else went wrong."""
        self.close()


def _lock(folder: Path) -> int | None:
    """Hold the folder for one writer; the lock goes with the process. None where the system has no such locks."""
    try:
        import fcntl
    except ImportError:
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise StoreError(f"{folder} is being written by another process") from None
    return handle
