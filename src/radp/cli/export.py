"""radp export json: scenarios as neutral JSON files."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Literal

import tyro

from radp.runs.errors import BadInput


def export_json(
    scenarios: Annotated[str, tyro.conf.Positional],
    out: Path,
    limit: int | None = None,
    compress: Literal["gz", "no"] = "gz",
) -> int:
    """Write the scenarios of a split or store as neutral JSON, one file per scenario, named by its token.

    Example:
        radp export json path/to/store --out exported --limit 10

    Args:
        scenarios: Name of a packaged split, or a path.
        out: Folder to write to.
        limit: At most this many, from the first.
        compress: gz for .json.gz, no for .json.
    """
    from radp.runs import Progress
    from radp.scenario.neutral_json import save_json, scenario_to_json
    from radp.scenario.splits import open_split

    if limit is not None and limit < 1:
        raise BadInput(f"--limit is {limit}, expected at least 1")
    split = open_split(scenarios)[:limit]
    out.mkdir(parents=True, exist_ok=True)
    suffix = ".json.gz" if compress == "gz" else ".json"
    written: dict[str, str] = {}
    with Progress("export", len(split)) as progress:
        for scenario in split:
            name = re.sub(r"[^A-Za-z0-9._-]", "_", scenario.token) + suffix
            if name in written:
                raise BadInput(
                    f"scenarios {written[name]!r} and {scenario.token!r} would both be written to {out / name}"
                )
            written[name] = scenario.token
            save_json(scenario_to_json(scenario), out / name)
            progress.advance()
    print(f"{len(split)} scenarios written to {out}")
    return 0
