"""radp evaluate prognosis: does pressure foretell risk better than what a safety engineer would use?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from radp.runs.errors import BadInput
from radp.runs.json_text import json_text


@dataclass(frozen=True)
class EvaluatePrognosis:
    """Compare pressures with TTC, TTB, DRAC, BTN, THW, PET, distance, RSS, lane margin and others as forecasts of risk.

    Runs of one planner, on several splits or with several seeds, are pooled. Temporal rho, AUPRC and lift with paired
    intervals clustered by log, Holm over the endpoints, a gradient-boosted ceiling over all measures, and what pressure
    adds to TTC and persistence on logs that the trees did not see. The runs must keep pressures.

    Example:
        radp evaluate prognosis runs/val --out runs/prognosis
        radp evaluate prognosis runs/val runs/random runs/hard --committed --out runs/prognosis
        radp simulate --planner radp-mini --scenarios sumo14-val --attribution teacher --out runs/val
    """

    runs: Positional[tuple[Path, ...]]
    """Folders of radp simulate --attribution teacher."""
    out: Path | None = None
    """Folder for prognosis.md and prognosis.json; nothing is written if not given."""
    committed: bool = False
    """Also with the risks of plans that are driven for 2 s without replanning."""
    seed: int = 0
    """Of resamples, folds and trees."""
    allow_missing: bool = False
    """Go on with the drives that are there if the run lacks some; otherwise it is refused."""
    json: bool = False
    """Print JSON instead of tables."""

    def __call__(self) -> int:
        from radp.cli.data import open_whole_run
        from radp.report.prognosis_tables import prognosis_json, prognosis_tables, runs_prognosis

        if not self.runs:
            raise BadInput("name at least one folder of radp simulate --attribution teacher")
        tables, data = [], []
        runs = [open_whole_run(run, self.allow_missing) for run in self.runs]
        for found, where in runs_prognosis(runs, self.committed, self.seed):
            tables += prognosis_tables(found, where)
            data.append(prognosis_json(found))
        text = "\n\n".join(table.markdown() for table in tables)
        print(json_text(data) if self.json else text)
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            (self.out / "prognosis.md").write_text(text + "\n")
            (self.out / "prognosis.json").write_text(json_text(data) + "\n")
        return 0
