"""radp evaluate alignment: do pressures foretell the risks of the same drive?"""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional


@dataclass(frozen=True)
class EvaluateAlignment:
    """Compare the pressures of a run with the risks that followed in the same drives, with 95% intervals.

    Seven risks from executed states alone; temporal Spearman, AUPRC and lift for teacher and head, a shuffled control,
    every pressure against every risk, and rival predictors. The run must keep pressures.

    Example:
        radp evaluate alignment runs/radp --out runs/alignment
        radp simulate --planner radp-mini --scenarios sumo14-val --attribution teacher --out runs/radp
    """

    runs: Positional[tuple[Path, ...]]
    """Folders of radp simulate --attribution teacher."""
    out: Path | None = None
    """Folder for RUN.md and RUN.json; nothing is written if not given."""
    seed: int = 0
    """Of shuffles and resamples."""
    json: bool = False
    """Print JSON instead of tables."""

    def __call__(self) -> int:
        from radp.evaluation.closed_loop import Run
        from radp.report.alignment_tables import endpoint_table, run_tables

        if not self.json:
            print(endpoint_table().markdown(), "\n")
        for folder in self.runs:
            run = Run.open(folder)
            begin = time.perf_counter()
            tables, data = run_tables(run, self.seed)
            text = "\n\n".join(table.markdown() for table in tables)
            print(json.dumps(data, indent=1) if self.json else f"{text}\n\n{time.perf_counter() - begin:.1f} s\n")
            if self.out is not None:
                self.out.mkdir(parents=True, exist_ok=True)
                (self.out / f"{folder.name}.md").write_text(f"{endpoint_table().markdown()}\n\n{text}\n")
                (self.out / f"{folder.name}.json").write_text(json.dumps(data, indent=1) + "\n")
        return 0
