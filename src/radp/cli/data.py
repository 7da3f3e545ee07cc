"""radp data list, radp data info: what scenarios there are."""

from __future__ import annotations

import json as json_module
from collections import Counter
from pathlib import Path
from typing import Annotated, Any

import tyro


def list_data(json: bool = False) -> int:
    """List the packaged splits and models.

    Example:
        radp data list

    Args:
        json: Print one JSON object.
    """
    from radp.scenario.splits import open_split
    from radp.zoo import list_models, list_splits

    splits = {name: len(open_split(name)) for name in list_splits()}
    models = list_models()
    if json:
        print(json_module.dumps({"splits": splits, "models": models}, indent=1))
        return 0
    for name, count in splits.items():
        print(f"split  {name}  {count} scenarios")
    for name in models:
        print(f"model  {name}")
    if not splits and not models:
        print("nothing is packaged")
    return 0


def info(scenarios: Annotated[str, tyro.conf.Positional], json: bool = False) -> int:
    """Say what a split, a store, a neutral JSON file or a folder of them holds.

    Example:
        radp data info path/to/store
        radp data info scenario.json.gz --json

    Args:
        scenarios: Name of a packaged split, or a path.
        json: Print one JSON object.
    """
    facts = describe(scenarios)
    if json:
        print(json_module.dumps(facts, indent=1))
        return 0
    print(f"{scenarios}: {facts['scenarios']} scenarios")
    for name in ("kinds", "sources"):
        print(f"{name}: " + ", ".join(f"{key} {count}" for key, count in facts[name].items()))
    if "maps" in facts:
        print(f"maps: {facts['maps']}; {facts['bytes_per_scenario']} bytes per scenario")
    for problem in facts["problems"]:
        print(f"problem: {problem}")
    return 0


def describe(name_or_path: str) -> dict[str, Any]:
    """Counts for a split, ready for JSON."""
    from radp.scenario.splits import open_split
    from radp.scenario.store import ScenarioStore

    split = open_split(name_or_path)
    if isinstance(split, ScenarioStore):
        entries = split.entries()
        return {
            "scenarios": len(split),
            "kinds": split.kinds(),
            "sources": _counted(entry.source for entry in entries),
            "maps": len({entry.map for entry in entries}),
            "bytes_per_scenario": _size(split.path) // max(len(split), 1),
            "problems": split.problems,
        }
    sources = _counted(scenario.source for scenario in split)
    return {"scenarios": len(split), "kinds": split.kinds(), "sources": sources, "problems": []}


def _counted(values: Any) -> dict[str, int]:
    return dict(sorted(Counter(values).items()))


def _size(folder: Path) -> int:
    return sum(file.stat().st_size for file in folder.iterdir())
