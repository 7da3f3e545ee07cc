"""radp evaluate intervention: follow the gradient of a rule a little, and see what changes."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional


@dataclass(frozen=True)
class EvaluateIntervention:
    """Move plans a small step along minus the gradient of a rule where it presses, drive on, and compare the risks.

    Every scenario of the run with high pressures is driven again for each rule, down the gradient and, as a control,
    up. What is there already is not driven again. The table is also written to OUT/intervention.md.

    Example:
        radp evaluate intervention runs/radp --out runs/intervention --rules collision lane --limit 20
    """

    run: Positional[Path]
    """Folder of radp simulate --attribution teacher."""
    out: Path
    """Folder for the drives and the table."""
    rules: tuple[str, ...] = ()
    """Rules to follow; all if not given."""
    step: float = 0.3
    """Metres that a plan is moved at most."""
    down_only: bool = False
    """Leave the control out."""
    limit: int | None = None
    """At most this many scenarios for each rule."""
    workers: int = 1
    """Processes."""

    def __call__(self) -> int:
        from radp.evaluation.closed_loop import Run
        from radp.evaluation.intervention import intervene
        from radp.report.intervention_table import intervention_table

        opened = Run.open(self.run)
        found = intervene(opened, self.out, self.rules, self.step, not self.down_only, self.limit, self.workers)
        where = f"{opened.job.planner} on {Path(opened.job.scenarios).name}, {opened.job.agents} agents"
        text = intervention_table(found, self.step, where).markdown()
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / "intervention.md").write_text(text + "\n")
        print(text)
        return 0
