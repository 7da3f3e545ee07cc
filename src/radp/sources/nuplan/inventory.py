"""What of nuPlan lies on this disk, and what is missing for the benchmarks that the community reports."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from radp.runs.errors import BadInput
from radp.sources.nuplan.filter import read_filter
from radp.sources.nuplan.layers import find_map
from radp.sources.nuplan.select import find_logs, select

BENCHMARKS = {"test14-hard": 272, "test14-random": 261, "reduced-val14": 318, "val14": 1118}  # scenarios
CITIES = ("sg-one-north", "us-ma-boston", "us-nv-las-vegas-strip", "us-pa-pittsburgh-hazelwood")


def take_stock(data: Path, maps: Path, filters: Iterable[Path] = ()) -> dict[str, Any]:
    """Logs per folder, maps per city, and for every filter file the scenarios that it finds; ready for JSON."""
    logs = find_logs(data) if data.is_dir() else []
    return {
        "logs": dict(sorted(Counter(path.parent.name for path in logs).items())),
        "maps": {city: _version(maps, city) for city in CITIES},
        "benchmarks": [_count(data, path) for path in find_filters(data, filters)] if logs else [],
    }


def find_filters(data: Path, given: Iterable[Path] = ()) -> list[Path]:
    """Filter files that were given (files or folders), else those in DATA and DATA/filters that name a benchmark."""
    places = list(given)
    files = [file for place in places for file in (sorted(place.glob("*.yaml")) if place.is_dir() else [place])]
    if not places:
        files = [file for folder in (data, data / "filters") for file in sorted(folder.glob("*.yaml"))]
    named_or_known = [file for file in files if file in places or benchmark_of(file)]
    return list(dict.fromkeys(named_or_known))


def benchmark_of(path: Path) -> str | None:
    """The benchmark that a file name tells: val14_split.yaml is val14."""
    stem = re.sub(r"[_\s]+", "-", path.stem.lower())
    return next((name for name in BENCHMARKS if stem.startswith(name)), None)


def _version(maps: Path, city: str) -> str | None:
    try:
        return find_map(maps, city).parent.name
    except BadInput:
        return None


def _count(data: Path, path: Path) -> dict[str, Any]:
    name = benchmark_of(path)
    entry: dict[str, Any] = {"file": str(path), "benchmark": name, "expected": BENCHMARKS.get(name or "")}
    try:
        found = select(data, read_filter(path))
    except BadInput as error:
        return {**entry, "found": 0, "missing": 0, "problems": [str(error)]}
    return {**entry, "found": len(found.picks), "missing": len(found.missing), "problems": list(found.broken.values())}


def in_words(stock: dict[str, Any]) -> list[str]:
    """The stock as lines."""
    logs = ", ".join(f"{count} in {folder}" for folder, count in stock["logs"].items())
    there = [f"{city} {version}" for city, version in stock["maps"].items() if version]
    absent = [city for city, version in stock["maps"].items() if not version]
    lines = [f"logs: {logs or 'none'}", f"maps: {', '.join(there) or 'none'}"]
    if absent:
        lines[-1] += f"; missing {', '.join(absent)}"
    for entry in stock["benchmarks"]:
        count = f"{entry['found']}" + (f" of {entry['expected']}" if entry["expected"] else "")
        line = f"{entry['benchmark'] or Path(entry['file']).stem}: {count} scenarios ({entry['file']})"
        if entry["missing"]:
            line += f"; {entry['missing']} tokens are in none of the logs"
        lines += [line, *(f"problem: {problem}" for problem in entry["problems"])]
    if stock["logs"] and not stock["benchmarks"]:
        lines.append("no filter files: give them with --filters, or put val14.yaml and the like beside the logs")
    return lines
