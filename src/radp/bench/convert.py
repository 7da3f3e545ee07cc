"""How fast nuPlan's files become scenarios of a store, in one process."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from radp.runs.errors import BadInput
from radp.runs.timing import alternate, load_average
from radp.sources.convert import Item, Source, as_it_is, convert_item, load_source
from radp.sources.settings import LogChoice


def bench_convert(db: Path | None = None, maps: Path | None = None, repeats: int = 25) -> dict[str, Any]:
    """Processor time of each log: reading alone, and reading and encoding, in turn. Maps are read before."""
    if db is None or maps is None:
        raise BadInput("radp bench convert needs --db and --maps, as radp data convert does")
    source, logs = load_source("nuplan"), {}
    for item in source.items(LogChoice(db=db, maps=maps)):
        found = convert_item(source, as_it_is, item)
        if not found.rows.scenarios:
            continue
        reading, whole = alternate(
            partial(_read, source, item), partial(convert_item, source, as_it_is, item), repeats=repeats
        )
        scenarios = len(found.rows.scenarios)
        logs[item.name] = {
            "scenarios": scenarios,
            "read_cpu_ms": 1e3 * reading.cpu / scenarios,
            "cpu_ms": 1e3 * whole.cpu / scenarios,
            "scenarios_per_cpu_s": scenarios / whole.cpu,
        }
    if not logs:
        raise BadInput(f"{db} holds no scenario that can be read")
    slowest = min(log["scenarios_per_cpu_s"] for log in logs.values())
    return {"logs": logs, "slowest_per_cpu_s": slowest, "load_average": load_average()}


def _read(source: Source, item: Item) -> None:
    for _ in source.scenarios(item):
        pass
