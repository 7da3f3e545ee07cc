"""The store: scenarios in Arrow shards, each road map once, and a manifest that is written last.

    manifest.json            the list of shards
    scenarios-00000.arrow    one row per scenario: index columns and its encoded arrays
    maps-00000.arrow         the road maps that appear first in that shard, by the hash of their content

Files are memory-mapped; a scenario is decoded when it is asked for. docs/store.md describes the files.
"""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from types import TracebackType
from typing import Any, overload

import pyarrow as pa

from radp.road.road_map import RoadMap
from radp.scenario.scenario import Scenario
from radp.scenario.shards import STORE, TABLES, map_from_row, map_row, read_shards, scenario_from_row, scenario_row
from radp.storage.codec import LEVEL
from radp.storage.errors import StoreError
from radp.storage.growing import UNFINISHED, GrowingStore
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
MOST_NAMED = 5  # problems in a sentence


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


class _Indexed(Sequence[Scenario]):
    """Scenarios with an index: a store, or some of one."""

    path: Path
    problems: list[str]  # with files and scenarios that cannot be read
    missing: int = 0  # scenarios of the store that cannot be read
    incomplete: str = ""  # what is missing, in a sentence

    def entries(self) -> tuple[Entry, ...]:
        """The index."""
        raise NotImplementedError

    def tokens(self) -> list[str]:
        return [entry.token for entry in self.entries()]

    def kind_of_each(self) -> list[str]:
        return [entry.kind for entry in self.entries()]

    def kinds(self) -> dict[str, int]:
        """kind -> number of scenarios, sorted by name."""
        return dict(sorted(Counter(self.kind_of_each()).items()))


class ScenarioStore(_Indexed):
    """N scenarios, by position or token, in the order of writing.

    Scenarios of one map share its RoadMap object while it is remembered. A store of which something cannot be read is
    refused, unless missing ones are allowed: `incomplete` then is the sentence that says so, and `missing` counts.
    """

    def __init__(self, path: Path, maps_kept: int = MAPS_KEPT, allow_missing: bool = False) -> None:
        self.path, self.maps_kept, self.allow_missing = path, maps_kept, allow_missing
        self.problems: list[str] = []
        self._map_rows: dict[str, tuple[pa.RecordBatch, int, Path]] = {}
        self._maps: OrderedDict[str, RoadMap] = OrderedDict()
        manifest = STORE.read(path)
        listed = read_shards(path, manifest)
        for file, batch in self._open(listed, "maps"):
            self._map_rows.update({key: (batch, row, file) for row, key in enumerate(batch["map"].to_pylist())})
        found = [
            (entry, (batch, row, file))
            for file, batch in self._open(listed, "scenarios")
            for row, entry in enumerate(entries_of(batch))
            if entry.map in self._map_rows
        ]
        self._entries, self._rows = tuple(entry for entry, _ in found), [place for _, place in found]
        self._position = {entry.token: i for i, entry in enumerate(self._entries)}
        if len(self._position) < len(self._entries):
            raise StoreError(f"{path} holds some scenarios more than once")
        total = sum(shard["scenarios"]["rows"] for shard in listed)
        self.missing = total - len(found)
        if self.missing and not self.problems:
            self.problems.append("road maps of some scenarios are in no file")
        if manifest.get(UNFINISHED):
            self.problems.append("what wrote it was stopped before the end; the same command goes on")
        if self.problems:
            self.incomplete = _incomplete(path, self.problems, len(self), total)
        if self.problems and not allow_missing:
            raise StoreError(f"{self.incomplete} (--allow-missing takes these)")

    @classmethod
    def open(cls, path: Path | str, maps_kept: int = MAPS_KEPT, allow_missing: bool = False) -> ScenarioStore:
        """The store in a folder; StoreError if there is none, or if something of it is missing."""
        return cls(Path(path), maps_kept, allow_missing)

    def _open(self, shards: list[dict[str, Any]], part: str) -> Iterator[tuple[Path, pa.RecordBatch]]:
        """The readable files of maps or scenarios."""
        for shard in shards:
            if shard.get(part) is not None:
                file = self.path / shard[part]["file"]
                try:
                    yield file, TABLES[part].open(file, shard[part]["rows"])
                except StoreError as error:
                    self.problems.append(str(error))

    def __len__(self) -> int:
        return len(self._entries)

    @overload
    def __getitem__(self, key: int | str) -> Scenario: ...
    @overload
    def __getitem__(self, key: slice) -> Selection: ...
    def __getitem__(self, key: int | str | slice) -> Scenario | Selection:
        """By position, by token, or a lazy selection by slice."""
        if isinstance(key, slice):
            return self.select(range(len(self))[key])
        index = self.position(key) if isinstance(key, str) else range(len(self))[key]
        batch, row, file = self._rows[index]
        return scenario_from_row(batch, row, self.road_map(self._entries[index].map), file)

    def readable(self) -> ScenarioStore | Selection:
        """The store, or those of its scenarios whose content is sound, every one tried; `missing` counts the others."""
        found = []
        problems = list(self.problems)
        for i in range(len(self)):
            try:
                self[i]
                found.append(i)
            except StoreError as error:
                problems.append(str(error))
        if len(found) == len(self):
            return self
        selection, total = self.select(found), len(self) + self.missing
        selection.problems, selection.missing = problems, total - len(found)
        selection.incomplete = _incomplete(self.path, problems, len(found), total)
        return selection

    def position(self, token: str) -> int:
        """Where a token stands; StoreError if it is unknown or lies in a broken shard."""
        if token not in self._position:
            broken = f" among its readable files: {'; '.join(self.problems)}" if self.problems else ""
            raise StoreError(f"{self.path} holds no scenario {token!r}{broken}")
        return self._position[token]

    def road_map(self, key: str) -> RoadMap:
        """A map by its key; the last few are remembered."""
        if key not in self._maps:
            self._maps[key] = map_from_row(*self._map_rows[key])
            while len(self._maps) > max(self.maps_kept, 1):
                self._maps.popitem(last=False)
        self._maps.move_to_end(key)
        return self._maps[key]

    def map_keys(self) -> list[str]:
        return list(self._map_rows)

    def entries(self) -> tuple[Entry, ...]:
        return self._entries

    def select(self, indices: Sequence[int]) -> Selection:
        """Some scenarios by position, still lazy."""
        return Selection(self, indices)

    def __contains__(self, token: object) -> bool:
        return token in self._position

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process gets the path and maps the files itself."""
        return ScenarioStore, (self.path, self.maps_kept, self.allow_missing)


def _incomplete(path: Path, problems: Sequence[str], found: int, total: int) -> str:
    count = f"{found} of {total} scenarios can be read" if found < total else f"it holds {total} scenarios"
    more = f" and {len(problems) - MOST_NAMED} more" if len(problems) > MOST_NAMED else ""
    return f"{path} is incomplete: {'; '.join(problems[:MOST_NAMED])}{more}; {count}"


class Selection(_Indexed):
    """Some of a store's scenarios, still lazy."""

    def __init__(self, store: ScenarioStore, indices: Sequence[int]) -> None:
        self.store, self.indices, self.path = store, indices, store.path
        self.problems, self.missing, self.incomplete = store.problems, store.missing, store.incomplete

    def _like(self, indices: Sequence[int]) -> Selection:
        chosen = Selection(self.store, indices)
        chosen.problems, chosen.missing, chosen.incomplete = self.problems, self.missing, self.incomplete
        return chosen

    def __len__(self) -> int:
        return len(self.indices)

    @overload
    def __getitem__(self, key: int) -> Scenario: ...
    @overload
    def __getitem__(self, key: slice) -> Selection: ...
    def __getitem__(self, key: int | slice) -> Scenario | Selection:
        if isinstance(key, slice):
            return self._like(self.indices[key])
        return self.store[self.indices[key]]

    def select(self, indices: Sequence[int]) -> Selection:
        """Some of these by position."""
        return self._like([self.indices[i] for i in indices])

    def entries(self) -> tuple[Entry, ...]:
        every = self.store.entries()
        return tuple(every[i] for i in self.indices)


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
        self._folder = GrowingStore(self.path, STORE)
        self._shards: list[dict[str, Any]] = []
        self._tokens: set[str] = set()
        self._map_keys: set[str] = set()
        self._rows: dict[str, list[dict[str, Any]]] = {part: [] for part in TABLES}
        if not self._folder.content:
            self._write_manifest(finished=False)
            return
        store = ScenarioStore.open(self.path, allow_missing=True)
        if store.missing:
            self._folder.release()
            raise StoreError(f"nothing can be added to {self.path}: {store.problems[0]}")
        self._shards = self._folder.content["shards"]
        self._tokens.update(store.tokens())
        self._map_keys.update(store.map_keys())

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
                self._rows["maps"].append(encoded.maps[row["map"]])
                self._map_keys.add(row["map"])
            self._rows["scenarios"].append(row)
            self._tokens.add(row["token"])
            if len(self._rows["scenarios"]) >= self.rows_per_shard:
                self.flush()

    def _refuse_known(self, tokens: Sequence[str]) -> None:
        repeated = [token for token, count in Counter(tokens).items() if count > 1 or token in self._tokens]
        if repeated:
            raise StoreError(f"{self.path} holds a scenario {repeated[0]!r} already")

    def flush(self, finished: bool = False) -> None:
        """Write what was added since the last shard: maps, scenarios, then the manifest."""
        if not self._rows["scenarios"]:
            if finished and self._folder.unfinished:
                self._write_manifest(finished)
            return
        shard: dict[str, Any] = {}
        for part, rows in self._rows.items():
            name = f"{part}-{len(self._shards):05d}.arrow"
            if rows:
                TABLES[part].write(self.path / name, rows)
            shard[part] = {"file": name, "rows": len(rows)} if rows else None
        self._shards.append(shard)
        self._write_manifest(finished)
        self._rows = {part: [] for part in TABLES}

    def _write_manifest(self, finished: bool) -> None:
        count = sum(shard["scenarios"]["rows"] for shard in self._shards)
        self._folder.write({"scenarios": count, "shards": self._shards}, finished)

    def close(self, finished: bool = True) -> None:
        """Write the last, shorter shard; a store that is not finished stays marked as incomplete."""
        try:
            self.flush(finished)
        finally:
            self._folder.release()

    def __enter__(self) -> ScenarioWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """What was added is kept even when something else went wrong."""
        self.close(finished=kind is None)
