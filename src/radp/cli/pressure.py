"""radp evaluate pressure: which rule presses most on whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from radp.evaluation.settings import PressureWatch
from radp.runs.engine import Engine
from radp.runs.json_text import json_text


@dataclass(frozen=True, kw_only=True)
class EvaluatePressure(PressureWatch):
    """Drive planners with the exact teacher beside them and say which rule presses most on whom.

    Mean pressure of every rule and the share of frames in which it is the strongest, with 95% intervals. Drives that
    are there already are not driven again. Also written: OUT/pressure.md and OUT/pressure.json.

    Example:
        radp evaluate pressure --planners idm plantf-mini radp-mini --split sumo14-val --out runs/pressure
    """

    out: Path
    """Folder for the runs and the table."""
    workers: int = 1
    """Processes."""
    where: Engine = field(default_factory=Engine)
    plan_timeout: float | None = None
    """Seconds within which a planner must answer, else that drive fails and the run goes on."""
    json: bool = False
    """Print JSON instead of the table."""

    def __call__(self) -> int:
        from radp.evaluation.pressing import measure_pressing
        from radp.report.pressing_table import pressing_table
        from radp.runs.files import write_json_atomically

        found = measure_pressing(self, self.out, self.workers, self.plan_timeout)
        text, data = pressing_table(found).markdown(), {"planners": [one.to_json() for one in found]}
        (self.out / "pressure.md").write_text(text + "\n")
        write_json_atomically(self.out / "pressure.json", data)
        print(json_text(data) if self.json else text)
        return 0
