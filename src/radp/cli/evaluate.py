"""radp evaluate: tables with intervals."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from radp.evaluation.settings import Comparison, FidelityCheck
from radp.runs.engine import Engine
from radp.runs.json_text import json_text


@dataclass(frozen=True, kw_only=True)
class EvaluatePlanners(Comparison):
    """Drive planners over splits in closed loop and print one table: every sub-score with its 95% interval.

    Beside each interval stands the smallest difference that could have been shown. Drives that are there already are
    not driven again. Also written: OUT/planners.md and OUT/planners.json.

    Example:
        radp evaluate planners --planners log_replay idm pdm_closed --splits sumo14-val --out runs/table
        radp evaluate planners --planners idm radp-mini --splits sumo14-val --base idm --seeds 3 --out runs/table
        radp evaluate planners --planners idm pdm_closed --splits sumo14-val --rulebook --out runs/table
    """

    out: Path
    """Folder for the runs and the table."""
    base: str | None = None
    """A planner of the list to which the others are compared, paired by scenario."""
    pooled: bool = False
    """Also give rows over the scenarios of all splits together."""
    rulebook: bool = False
    """Also say of each pair of planners who keeps the rulebook better, and which tier decides."""
    workers: int = 1
    """Processes."""
    where: Engine = field(default_factory=Engine)
    plan_timeout: float | None = None
    """Seconds within which a planner must answer, else that drive fails and the run goes on."""
    json: bool = False
    """Print JSON instead of the table."""

    def __call__(self) -> int:
        from radp.evaluation.planners import compare, footnote, over_splits, table, table_json
        from radp.runs.errors import BadInput
        from radp.runs.files import write_json_atomically

        names, base = [Path(planner).name for planner in self.planners], self.base and Path(self.base).name
        if base is not None and base not in names:
            raise BadInput(f"base is {base!r}, expected one of the planners: {', '.join(names)}")
        rows = compare(self, self.out, self.workers, self.plan_timeout)
        rows += over_splits(rows) if self.pooled else []
        text, data = f"{table(rows, base)}\n\n{footnote(rows)}", table_json(rows, base)
        if self.rulebook:
            from radp.evaluation.rulebook import judge_planners, rulebook_table

            pairs = judge_planners(self, self.out)
            text = f"{text}\n\n{rulebook_table(pairs)}"
            data["rulebook"] = [pair.to_json() for pair in pairs]
        (self.out / "planners.md").write_text(text + "\n")
        write_json_atomically(self.out / "planners.json", data)
        print(json_text(data) if self.json else text)
        return 0


@dataclass(frozen=True, kw_only=True)
class EvaluateFidelity(FidelityCheck):
    """Compare the pressures that a planner's head predicts with the exact teacher's, on the same frames in closed loop.

    Spearman, mean absolute error and Top-1 with 95% intervals (10,000 resamples of scenarios). Drives that are there
    already are not driven again. Also written: OUT/fidelity.md and OUT/fidelity.json.

    Example:
        radp evaluate fidelity --planner radp-mini --splits sumo14-val sumo14-random --out runs/fidelity
    """

    out: Path
    """Folder for the runs and the tables."""
    workers: int = 1
    """Processes."""
    where: Engine = field(default_factory=Engine)
    plan_timeout: float | None = None
    """Seconds within which the planner must answer, else that drive fails and the run goes on."""
    json: bool = False
    """Print JSON instead of the table."""

    def __call__(self) -> int:
        from radp.evaluation.fidelity import fidelity_table, measure_fidelity
        from radp.runs.files import write_json_atomically

        found = measure_fidelity(self, self.out, self.workers, self.plan_timeout)
        data = {"planner": self.planner, "agents": self.agents, "splits": [one.to_json() for one in found]}
        write_json_atomically(self.out / "fidelity.json", data)
        text = fidelity_table(found)
        (self.out / "fidelity.md").write_text(text + "\n")
        print(json_text(data) if self.json else text)
        return 0
