"""radp evaluate alignment: do pressures foretell the risks of the same drive?"""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from radp.runs.errors import BadInput
from radp.runs.json_text import json_text


@dataclass(frozen=True)
class EvaluateAlignment:
    """Compare the pressures of runs with the risks that followed in the same drives, with 95% intervals.

    Seven risks from executed states alone, in the main and in the paper's reading; temporal Spearman, AUPRC and lift
    for teacher and head; controls (shuffled, the clock, other drives at the same clock, persistence), every pressure
    against every risk, and rival predictors.
    A rho that does not beat the clock and other drives is called no evidence. Several runs of one planner, on other
    splits or with other seeds, are also pooled. The runs must keep pressures.

    Example:
        radp evaluate alignment runs/val --out runs/alignment
        radp evaluate alignment runs/val runs/random runs/hard runs/val-seed1 --out runs/alignment
        radp simulate --planner radp-mini --scenarios sumo14-val --attribution teacher --out runs/val
    """

    runs: Positional[tuple[Path, ...]]
    """Folders of radp simulate --attribution teacher."""
    out: Path | None = None
    """Folder for RUN.md and RUN.json, and pooled.md and pooled.json; nothing is written if not given."""
    seed: int = 0
    """Of shuffles and resamples."""
    allow_missing: bool = False
    """Go on with the drives that are there if the run lacks some; otherwise it is refused."""
    json: bool = False
    """Print JSON instead of tables."""

    def __call__(self) -> int:
        from radp.cli.data import open_whole_run
        from radp.report.alignment_tables import protocol, run_tables

        if not self.runs:
            raise BadInput("name at least one folder of radp simulate --attribution teacher")
        if not self.json:
            print(protocol(), "\n")
        begin = time.perf_counter()
        runs = [open_whole_run(folder, self.allow_missing) for folder in self.runs]
        for name, tables, data in run_tables(runs, self.seed):
            text = "\n\n".join(table.markdown() for table in tables)
            print(json_text(data) if self.json else f"{text}\n\n{time.perf_counter() - begin:.1f} s\n")
            if self.out is not None:
                self.out.mkdir(parents=True, exist_ok=True)
                (self.out / f"{name}.md").write_text(f"{protocol()}\n\n{text}\n")
                (self.out / f"{name}.json").write_text(json_text(data) + "\n")
        return 0
