"""radp evaluate intervention: follow the gradient of a rule a little, and see what changes."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import tyro


def evaluate_intervention(
    run: Annotated[Path, tyro.conf.Positional],
    out: Path,
    rules: tuple[str, ...] = (),
    step: float = 0.3,
    down_only: bool = False,
    limit: int | None = None,
    workers: int = 1,
) -> int:
    """Move plans a small step along minus the gradient of a rule where it presses, drive on, and compare the risks.

    Every scenario of the run with high pressures is driven again for each rule, down the gradient and, as a control,
    up. What is there already is not driven again. The table is also written to OUT/intervention.md.

    Example:
        radp evaluate intervention runs/radp --out runs/intervention --rules collision lane --limit 20

    Args:
        run: Folder of radp simulate --attribution teacher.
        out: Folder for the drives and the table.
        rules: Rules to follow; all if not given.
        step: Metres that a plan is moved at most.
        down_only: Leave the control out.
        limit: At most this many scenarios for each rule.
        workers: Processes.
    """
    from radp.evaluation.closed_loop import Run
    from radp.evaluation.intervention import intervene
    from radp.report.intervention_table import intervention_table

    opened = Run.open(run)
    found = intervene(opened, out, rules, step, not down_only, limit, workers)
    where = f"{opened.job.planner} on {Path(opened.job.scenarios).name}, {opened.job.options.agents} agents"
    text = intervention_table(found, step, where).markdown()
    out.mkdir(parents=True, exist_ok=True)
    (out / "intervention.md").write_text(text + "\n")
    print(text)
    return 0
