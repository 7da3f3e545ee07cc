"""From logs of any origin to a scenario store: one source per origin, one piece of work per log file.

    OUT/config.json    the settings; another conversion into the same folder is refused
    OUT/manifest.json  and shards: the store (docs/store.md)
    OUT/items.jsonl    which log gave which scenarios, in order
    OUT/ledger.jsonl   what failed, and why
    OUT/card.json      counts, and what had to be rebuilt or stays unknown; written last

Logs are converted in parallel and written in their order, so the store is the same whatever the number of workers, and
also when the conversion was killed and taken up again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from radp.runs.allowance import Allowance, half_of_memory, renew
from radp.runs.claim import claimed
from radp.runs.errors import BadInput, did_you_mean
from radp.runs.folder import RunFolder
from radp.runs.ledger import JsonLines
from radp.runs.parallel import parallel_map
from radp.scenario import Scenario
from radp.scenario.recording import NoEgo, Recording
from radp.scenario.store import EncodedScenarios, ScenarioStore, ScenarioWriter, encode_scenarios
from radp.sources.limits import MOST_NAME, MOST_SECONDS
from radp.sources.settings import Demonstrations, LogChoice
from radp.sources.sound import check_log
from radp.storage.shelf import Shelf

SOURCES = {  # name -> MODULE:OBJECT, imported when it is asked for
    "nuplan": "radp.sources.nuplan.source:NUPLAN",
    "nuplan-log": "radp.sources.nuplan.simulation_log:NUPLAN_LOG",
    "nuplan-sample": "radp.sources.nuplan.samples:NUPLAN_SAMPLE",
    "waymo-json": "radp.sources.waymo.gpudrive:WAYMO_JSON",
    "waymo-proto": "radp.sources.waymo.proto:WAYMO_PROTO",
    "scenarionet": "radp.sources.scenarionet.source:SCENARIONET",
    "argoverse": "radp.sources.argoverse.source:ARGOVERSE",
    "commonroad": "radp.sources.commonroad.source:COMMONROAD",
}
ROWS_PER_SHARD = 128  # a kill loses fewer than this many scenarios
ZSTD_LEVEL = 9
REBUILT, UNKNOWN = "rebuilt", "unknown"  # tags of a scenario: comma-separated words on what its source lacked


class SourceError(BadInput):
    """A log that cannot be used; the message is one sentence that names the file and the field."""


class Item(Protocol):
    """One piece of work, small and picklable: it carries all that `scenarios` needs. `name` is unique in a run."""

    @property
    def name(self) -> str: ...


@dataclass(frozen=True)
class FileItem:
    """The usual item: one log file (or the folder of one log)."""

    name: str
    path: Path
    ego: str = "sdc"


@dataclass(frozen=True)
class Refused:
    """A part of an item (a scenario, say) that cannot be used while the rest of the item can: a row of the ledger."""

    name: str
    reason: str


class Source(Protocol):
    """An origin of logs. Picklable: a frozen dataclass or an instance without state at module level.

    `scenarios` is called in a worker process and yields finished scenarios, or recordings whose ego is still to
    be chosen (`radp.scenario.egos.choose_egos`). What it raises costs the item; what it yields as `Refused` costs
    itself.
    """

    @property
    def name(self) -> str: ...

    def items(self, options: Any) -> Sequence[Item]: ...
    def scenarios(self, item: Any) -> Iterator[Scenario | Recording | Refused]: ...


Finish = Callable[[Scenario | Recording], Iterable[Scenario]]  # what a source yields -> what goes into the store


def as_it_is(scenario: Scenario | Recording) -> tuple[Scenario]:
    """The finish that changes nothing."""
    assert isinstance(scenario, Scenario), "a recording needs a finish that chooses its ego"
    return (scenario,)


def load_source(name: str) -> Source:
    """A source by name; BadInput lists the names."""
    if name not in SOURCES:
        raise BadInput(f"unknown source {name!r}; expected one of {', '.join(SOURCES)}{did_you_mean(name, SOURCES)}")
    module, attribute = SOURCES[name].split(":")
    return getattr(import_module(module), attribute)


@dataclass(frozen=True)
class Converted:
    """What a worker sends back for one item."""

    rows: EncodedScenarios
    refused: tuple[Refused, ...]
    empty: str = ""  # why a sound log gave no scenario


def convert(
    source: Source,
    logs: LogChoice | Demonstrations,
    out: Path,
    workers: int = 1,
    finish: Finish = as_it_is,
    isolated: bool = True,
    own: Allowance | None = None,
) -> dict[str, Any]:
    """Convert all items of a source into the store `out`; returns the card. The same command takes up a killed run.

    `finish` (an importable function or a partial of one) has the last word on each scenario: it may change, multiply or
    drop it. Logs are read in other processes, so that one which crashes, hangs or fills the memory costs only itself;
    not `isolated`, which is for files of our own, and with one worker: in this one, unless such work has an allowance
    of its `own`.
    """
    items = list(source.items(logs))[: logs.limit]
    if not items:
        raise BadInput(f"{logs.place} holds no logs that the source {source.name} can read")
    names = [item.name for item in items]
    if len(set(names)) < len(names):
        raise BadInput(f"two logs are named {Counter(names).most_common(1)[0][0]!r}; convert them one by one")
    allowance = Allowance(MOST_SECONDS, half_of_memory(workers)) if isolated else own
    with claimed(out):
        return _convert(source, logs, items, out, workers, finish, allowance)


def _convert(
    source: Source,
    logs: LogChoice | Demonstrations,
    items: Sequence[Item],
    out: Path,
    workers: int,
    finish: Finish,
    allowance: Allowance | None,
) -> dict[str, Any]:
    run = RunFolder.create(out, "data convert", logs, facts={"source": source.name})
    with ScenarioWriter(out, ROWS_PER_SHARD, ZSTD_LEVEL) as writer:
        conversion = Conversion(run, writer)
        left = [item for item in items if not conversion.is_done(item)]
        shelf = Shelf[Converted](lambda turn, result: conversion.write(left[turn], result))
        parallel_map(
            partial(convert_item, source, finish), left, workers=workers, on_result=shelf.put, on_failure=shelf.lose,
            name=_name, ledger=run.ledger, label="logs", folder=out, allowance=allowance,
        )  # fmt: skip
    card = make_card(ScenarioStore.open(out), source.name, len(items), run.ledger.failures(), conversion.empty())
    run.write_json("card.json", card)
    return card


def _name(item: Item) -> str:
    return item.name


def convert_item(source: Source, finish: Finish, item: Item) -> Converted:
    """All scenarios of one item, checked and encoded; a scenario that is not sound is refused, not the item."""
    scenarios: list[dict[str, Any]] = []
    maps: dict[str, dict[str, Any]] = {}
    refused: list[Refused] = []
    empty: list[str] = []
    for scenario in source.scenarios(item):
        renew()
        if isinstance(scenario, Refused):
            refused.append(scenario)
            continue
        try:
            check_log(scenario)
            rows = encode_scenarios(list(finish(scenario)), maps, ZSTD_LEVEL)
        except NoEgo as error:
            empty.append(str(error))
            continue
        except ValueError as error:
            name = scenario.token if scenario.token.isprintable() else ascii(scenario.token)
            refused.append(Refused(name[:MOST_NAME] or item.name, " ".join(str(error).split())))
            continue
        scenarios += rows.scenarios
        maps |= rows.maps
    why = "" if scenarios or refused else "; ".join(empty[:3]) or "it holds no scenario"
    return Converted(EncodedScenarios(tuple(scenarios), maps), tuple(refused), why)


class Conversion:
    """What is written of a conversion: scenarios, the journal (which item gave which tokens), the ledger.

    An item is done when all its tokens are in the store.
    """

    def __init__(self, run: RunFolder, writer: ScenarioWriter) -> None:
        self.run, self.writer = run, writer
        self._journal = JsonLines(run.path / "items.jsonl", "item", "tokens")
        self._tokens: dict[str, list[str]] = {row["item"]: row["tokens"] for row in self._rows()}

    def empty(self) -> dict[str, str]:
        """item -> why it gave no scenario, although nothing is wrong with it."""
        return {row["item"]: str(row["empty"]) for row in self._rows() if row.get("empty")}

    def _rows(self) -> list[dict[str, Any]]:
        """Those that we wrote: others may have written into the file."""
        rows = (row for row in self._journal.rows() if isinstance(row["item"], str) and isinstance(row["tokens"], list))
        return [row for row in rows if all(isinstance(token, str) for token in row["tokens"])]

    def is_done(self, item: Item) -> bool:
        tokens = self._tokens.get(item.name)
        return tokens is not None and all(token in self.writer for token in tokens)

    def write(self, item: Item, result: Converted) -> None:
        """Note what the item gave, then add what of it the store does not hold yet."""
        known = self.run.ledger.failures()
        for part in result.refused:
            if known.get(part.name) != part.reason:
                self.run.ledger.record(part.name, part.reason)
        tokens = [row["token"] for row in result.rows.scenarios]
        if self._tokens.get(item.name) != tokens:
            self._journal.append(item=item.name, tokens=tokens, **({"empty": result.empty} if result.empty else {}))
        fresh = tuple(row for row in result.rows.scenarios if row["token"] not in self.writer)
        for row in fresh:
            if row["token"] in known:
                self.run.ledger.settle(row["token"])
        self.writer.add_encoded(EncodedScenarios(fresh, result.rows.maps))


def make_card(
    store: ScenarioStore, source: str, items: int, failed: dict[str, str], empty: dict[str, str] | None = None
) -> dict[str, Any]:
    """Counts for JSON: scenarios, kinds, lengths, what was rebuilt and what is unknown (word -> scenarios)."""
    entries = store.entries()
    words = {
        tag: Counter(w for e in entries for w in e.tags.get(tag, "").split(", ") if w) for tag in (REBUILT, UNKNOWN)
    }
    return {
        "source": source,
        "logs": items,
        "scenarios": len(entries),
        "maps": len({entry.map for entry in entries}),
        "kinds": store.kinds(),
        "frames": {str(frames): count for frames, count in sorted(Counter(e.frames for e in entries).items())},
        **{tag: dict(sorted(counts.items())) for tag, counts in words.items()},
        "failed": failed,
        **({"empty": empty} if empty else {}),
    }
