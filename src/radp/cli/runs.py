"""radp runs: what a folder of results holds and lacks, and how long it took."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tyro.conf import Positional

from radp.runs.errors import printable
from radp.runs.json_text import json_text

NAMED = 5  # pieces that are named in the text


@dataclass(frozen=True)
class RunsShow:
    """Say what is done, failed and missing in a folder of results, on which node it ran, and how long it took.

    Works while a command is at work on the folder, too. The exit code is 1 if something failed or is missing.

    Example:
        radp runs show runs/table
        radp runs show runs/val14 --json
    """

    folder: Positional[Path]
    """Folder of a run, a cache, samples or a conversion; or a folder of such folders."""
    json: bool = False
    """Print one JSON object."""

    def __call__(self) -> int:
        from radp.evaluation.state import states_below

        states = states_below(self.folder)
        print(json_text({"runs": states}) if self.json else printable("\n".join(map(readable, states))))
        return 1 if any(state["failed"] or state["missing"] for state in states) else 0


@dataclass(frozen=True)
class RunsForget:
    """Delete what was noted about the work on a folder: times of pieces, what jobs left behind. Results stay.

    Example:
        radp runs forget runs/val14
    """

    folder: Positional[Path]
    """Folder of results that nobody is at work on."""

    def __call__(self) -> int:
        from radp.runs.claim import BOOKS
        from radp.runs.errors import BadInput
        from radp.runs.journal import forget

        if not (self.folder / BOOKS).is_dir():
            raise BadInput(f"{self.folder} has no notes about work on it")
        forget(self.folder)
        return 0


def readable(state: dict[str, Any]) -> str:
    """One folder in words."""
    driver = state["driver"]
    who = f"process {driver['process']} on {driver['host']} is at work" if driver else "nobody is at work on it"
    what = f"radp {state['command']}, " if state["command"] else ""
    lines = [
        f"{state['folder']}: {what}{state['done']} of {state['total']} {state['of']} done, "
        f"{len(state['failed'])} failed, {state['missing']} missing; {who}"
    ]
    for found in state["maps"]:
        took = f" in {found['seconds']:.1f} s" if "seconds" in found else ""
        lines.append(
            f"  {found['at']} {found['label']} on {found['engine']}, {found['workers']} workers: {found['done']} done, "
            f"{found['failed']} failed, {found['missing']} missing, {found['state']}{took}"
        )
        lines += [f"    {n}: {node['pieces']} pieces, {node['seconds']:.1f} s" for n, node in found["nodes"].items()]
        if times := found["piece_seconds"]:
            slow = ", ".join(f"{row['piece']} {row['seconds']:.2f} s" for row in found["slowest"][:NAMED])
            lines.append(f"    a piece took {times['median']:.2f} s (median); the slowest: {slow}")
    failed = list(state["failed"].items())
    lines += [f"  failed: {name}: {reason}" for name, reason in failed[:NAMED]]
    if state["missing_first"]:
        lines.append(
            f"  missing: {', '.join(state['missing_first'][:NAMED])}{' ...' if state['missing'] > NAMED else ''}"
        )
    return "\n".join(lines)
