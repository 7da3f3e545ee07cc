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
    again. Also written: OUT/dose.md, OUT/dose.json and, with matplotlib, OUT/dose.png. With `states` nothing is driven:
    states of driven logs are planned at every weight, which takes minutes and tells whether driving is worth while.

    Example:
        radp evaluate dose --planner radp-mini-weights --scenarios sumo14-val --out runs/dose
        radp evaluate dose --planner radp-mini-weights --rules collision goal --doses 0.25 4 --out runs/dose
        radp evaluate dose --planner radp-mini-weights --states runs/held-samples --out runs/dose-states
    """

    out: Path
    """Folder for the runs, the tables and the figure."""
    states: Path | None = None
    """Samples made by `radp data samples` from driven logs: plan these, and drive nothing."""
    count: int = 1_000
    """How many of these states are planned, at most."""
    workers: int = 1
    """Processes."""
    where: Engine = field(default_factory=Engine)
    json: bool = False
    """Print JSON instead of the tables."""

    def __call__(self) -> int:
        return self._drive() if self.states is None else self._plan(self.states)

    def _plan(self, states: Path) -> int:
        import torch

        from radp.evaluation.dose_states import state_response
        from radp.report.dose_table import state_table
        from radp.runs.files import write_json_atomically

        torch.set_num_threads(self.workers)
        found = state_response(self, states, self.count)
        data = {"planner": self.planner, "states": str(states), "rules": [one.to_json() for one in found]}
        text = state_table(found, self.planner, str(states)).markdown()
        self.out.mkdir(parents=True, exist_ok=True)
        write_json_atomically(self.out / "dose-states.json", data)
        (self.out / "dose-states.md").write_text(text + "\n")
        print(json_text(data) if self.json else text)
        return 0

    def _drive(self) -> int:
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
