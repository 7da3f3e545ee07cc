"""radp evaluate dose: what changes when one rule weighs more."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from radp.evaluation.settings import DoseResponse
from radp.runs.engine import Engine
from radp.runs.json_text import json_text


@dataclass(frozen=True, kw_only=True)
class EvaluateDose(DoseResponse):
    """Drive a planner that takes weights of rules at several weights of one rule at a time, and see what changes.

    For each rule: its own cost, the risks that its pressure stands for and every sub-score against the default weight,
    paired by scenario, and whether the cost falls as the weight grows. Drives that are there already are not driven
    again. Also written: OUT/dose.md, OUT/dose.json and, with matplotlib, OUT/dose.png.

    Example:
        radp evaluate dose --planner radp-mini-weights --scenarios sumo14-val --out runs/dose
        radp evaluate dose --planner radp-mini-weights --rules collision goal --doses 0.25 4 --out runs/dose
    """

    out: Path
    """Folder for the runs, the tables and the figure."""
    workers: int = 1
    """Processes."""
    where: Engine = field(default_factory=Engine)
    json: bool = False
    """Print JSON instead of the tables."""

    def __call__(self) -> int:
        from radp.evaluation.dose import dose_response
        from radp.report.dose_table import dose_tables, draw_doses
        from radp.runs.files import write_json_atomically

        found = dose_response(self, self.out, self.workers)
        data = {"planner": self.planner, "scenarios": self.scenarios, "rules": [one.to_json() for one in found]}
        write_json_atomically(self.out / "dose.json", data)
        text = "\n\n".join(table.markdown() for table in dose_tables(found, self.planner, self.scenarios))
        (self.out / "dose.md").write_text(text + "\n")
        draw_doses(found, self.out / "dose.png")
        print(json_text(data) if self.json else text)
        return 0
