"""radp export json: scenarios as neutral JSON files."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from tyro.conf import Positional

from radp.runs.errors import BadInput


@dataclass(frozen=True)
class ExportJson:
    """Write the scenarios of a split or store as neutral JSON, one file per scenario, named by its token.

    Example:
        radp export json path/to/store --out exported --limit 10
    """

    scenarios: Positional[str]
    """Name of a packaged split, or a path."""
    out: Path
    """Folder to write to."""
    limit: int | None = None
    """At most this many: the first of each kind, then the second of each, and so on."""
    compress: Literal["gz", "no"] = "gz"
    """gz for .json.gz, no for .json."""
    allow_missing: bool = False
    """Write what can be read of a store that is incomplete."""

    def __call__(self) -> int:
        from radp.cli.data import say_missing
        from radp.runs.files import short_stem
        from radp.runs.progress import Progress
        from radp.scenario.neutral_json import save_json, scenario_to_json
        from radp.scenario.splits import limited, open_split

        if self.limit is not None and self.limit < 1:
            raise BadInput(f"--limit is {self.limit}, expected at least 1")
        split = limited(open_split(self.scenarios, self.allow_missing), self.limit)
        say_missing(split)
        suffix = ".json.gz" if self.compress == "gz" else ".json"
        written: dict[str, str] = {}
        with Progress("export", len(split)) as progress:
            for scenario in split:
                name = short_stem(re.sub(r"[^A-Za-z0-9._-]", "_", scenario.token), scenario.token) + suffix
                if name in written:
                    raise BadInput(
                        f"scenarios {written[name]!r} and {scenario.token!r} would both be written to {self.out / name}"
                    )
                written[name] = scenario.token
                save_json(scenario_to_json(scenario), self.out / name)
                progress.advance()
        print(f"{len(split)} scenarios written to {self.out}")
        return 0
