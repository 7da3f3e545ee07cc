"""radp evaluate alignment: do pressures foretell the risks of the same drive?"""

from __future__ import annotations

import json as json_module
import time
from pathlib import Path
from typing import Annotated

import tyro


def evaluate_alignment(
    runs: Annotated[tuple[Path, ...], tyro.conf.Positional],
    out: Path | None = None,
    seed: int = 0,
    json: bool = False,
) -> int:
    """Compare the pressures of a run with the risks that followed in the same drives, with 95% intervals.

    Seven risks from executed states alone; temporal Spearman, AUPRC and lift for teacher and head, a shuffled control,
    every pressure against every risk, and rival predictors. The run must keep pressures.

    Example:
        radp evaluate alignment runs/radp --out runs/alignment
        radp simulate --planner radp-mini --scenarios sumo14-val --attribution teacher --out runs/radp

    Args:
        runs: Folders of radp simulate --attribution teacher.
        out: Folder for RUN.md and RUN.json; nothing is written if not given.
        seed: Of shuffles and resamples.
        json: Print JSON instead of tables.
    """
    from radp.evaluation.closed_loop import Run
    from radp.report.alignment_tables import endpoint_table, run_tables

    if not json:
        print(endpoint_table().markdown(), "\n")
    for folder in runs:
        run = Run.open(folder)
        begin = time.perf_counter()
        tables, data = run_tables(run, seed)
        text = "\n\n".join(table.markdown() for table in tables)
        print(json_module.dumps(data, indent=1) if json else f"{text}\n\n{time.perf_counter() - begin:.1f} s\n")
        if out is not None:
            out.mkdir(parents=True, exist_ok=True)
            (out / f"{folder.name}.md").write_text(f"{endpoint_table().markdown()}\n\n{text}\n")
            (out / f"{folder.name}.json").write_text(json_module.dumps(data, indent=1) + "\n")
    return 0
