"""radp evaluate intervention: follow the gradient of a rule, and see what changes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tyro.conf import Positional

from radp.runs.engine import Engine
from radp.runs.json_text import json_text


@dataclass(frozen=True)
class EvaluateIntervention:
    """Add accelerations that halve the cost of a rule where it presses, drive on, and compare the risks.

    Every scenario of the run with high pressures is driven again for each rule: down the gradient and, as controls, as
    strongly up and in a random direction. What is there already is not driven again. The tables are also written to
    OUT/intervention.md. Kinematics and comfort have no sound intervention through the plan and are left out.

    Example:
        radp evaluate intervention runs/radp --out runs/intervention --rules collision lane --limit 20
        radp simulate --planner radp-mini --scenarios sumo14-val --attribution teacher --rule-set v2 --out runs/radp
    """

    run: Positional[Path]
    """Folder of radp simulate --attribution teacher."""
    out: Path
    """Folder for the drives and the table."""
    rules: tuple[str, ...] = ()
    """Rules to follow: collision, lane, speed, goal or your own; all if not given."""
    swerve: bool = False
    """Let the collision rule act to the side, too; otherwise along the path only."""
    down_only: bool = False
    """Leave the controls out."""
    limit: int | None = None
    """At most this many scenarios for each rule."""
    workers: int = 1
    """Processes."""
    where: Engine = field(default_factory=Engine)
    allow_missing: bool = False
    """Go on with the drives that are there if the run lacks some; otherwise it is refused."""
    json: bool = False
    """Print the tables as JSON."""

    def __call__(self) -> int:
        from radp.cli.data import open_whole_run
        from radp.evaluation.intervention import WAYS, intervene
        from radp.report.intervention_table import intervention_tables

        opened, ways = open_whole_run(self.run, self.allow_missing), WAYS[:1] if self.down_only else WAYS
        found = intervene(opened, self.out, self.rules, ways, self.swerve, self.limit, self.workers)
        where = f"{opened.job.planner} on {Path(opened.job.scenarios).name}, {opened.job.agents} agents"
        tables = intervention_tables(found, where)
        text = "\n\n".join(table.markdown() for table in tables)
        self.out.mkdir(parents=True, exist_ok=True)
        (self.out / "intervention.md").write_text(text + "\n")
        print(json_text([table.to_json() for table in tables]) if self.json else text)
        return 0
