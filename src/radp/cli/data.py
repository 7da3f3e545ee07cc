"""radp data list, radp data info: what scenarios there are."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tyro.conf import Positional

from radp.runs.errors import BadInput
from radp.runs.json_text import json_text

if TYPE_CHECKING:
    from radp.evaluation.closed_loop import Run
    from radp.scenario.splits import Split


@dataclass(frozen=True)
class DataList:
    """List the packaged splits and models.

    Example:
        radp data list
    """

    json: bool = False
    """Print one JSON object."""

    def __call__(self) -> int:
        from radp.scenario.splits import open_split
        from radp.zoo import list_models, list_splits

        splits = {name: len(open_split(name)) for name in list_splits()}
        models = list_models()
        if self.json:
            print(json_text({"splits": splits, "models": models}))
            return 0
        for name, count in splits.items():
            print(f"split  {name}  {count} scenarios")
        for name in models:
            print(f"model  {name}")
        if not splits and not models:
            print("nothing is packaged")
        return 0


@dataclass(frozen=True)
class DataInfo:
    """Say what a split, a store, a neutral JSON file or a folder of them holds; exit code 2 if something is missing.

    Example:
        radp data info path/to/store
        radp data info scenario.json.gz --json
    """

    scenarios: Positional[str]
    """Name of a packaged split, or a path."""
    json: bool = False
    """Print one JSON object."""
    allow_missing: bool = False
    """Exit with code 0 even if the store is incomplete."""

    def __call__(self) -> int:
        facts = describe(self.scenarios)
        code = 2 if facts["problems"] and not self.allow_missing else 0
        if self.json:
            print(json_text(facts))
            return code
        print(f"{self.scenarios}: {facts['scenarios']} scenarios")
        for name in ("kinds", "sources"):
            print(f"{name}: " + ", ".join(f"{key} {count}" for key, count in facts[name].items()))
        if "maps" in facts:
            print(f"maps: {facts['maps']}; {facts['bytes_per_scenario']} bytes per scenario")
        for problem in facts["problems"]:
            print(f"problem: {problem}")
        if facts["problems"]:
            print(f"missing: {facts['missing']} scenarios")
        return code


def say_missing(split: Split) -> None:
    """A sentence on stderr if the store is incomplete."""
    if split.incomplete:
        print(f"radp: {split.incomplete}; going on with these", file=sys.stderr)


def open_whole_run(folder: Path, allow_missing: bool) -> Run:
    """A run whose drives are all there; one that lacks some is refused, or gone on with after a sentence on stderr."""
    from radp.evaluation.closed_loop import Run

    run = Run.open(folder)
    if run.incomplete and not allow_missing:
        raise BadInput(f"{run.incomplete}, --allow-missing goes on without them")
    if run.incomplete:
        print(f"radp: {run.incomplete}; going on without them", file=sys.stderr)
    return run


def describe(name_or_path: str) -> dict[str, Any]:
    """Counts for a split, ready for JSON."""
    from radp.scenario.splits import open_split
    from radp.scenario.store import ScenarioStore, Selection

    split = open_split(name_or_path, allow_missing=True)
    if isinstance(split, ScenarioStore | Selection):
        entries = split.entries()
        return {
            "scenarios": len(split),
            "kinds": split.kinds(),
            "sources": _counted(entry.source for entry in entries),
            "maps": len({entry.map for entry in entries}),
            "bytes_per_scenario": _size(split.path) // max(len(split), 1),
            "problems": split.problems,
            "missing": split.missing,
        }
    sources = _counted(scenario.source for scenario in split)
    return {"scenarios": len(split), "kinds": split.kinds(), "sources": sources, "problems": [], "missing": 0}


def _counted(values: Any) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir() if file.is_file())
