"""radp evaluate faithfulness: do explanations point at the road users that move the plan?"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from radp.runs.errors import BadInput
from radp.runs.json_text import json_text


@dataclass(frozen=True)
class EvaluateFaithfulness:
    """Compare pressure with other families of explanation: who of the road users moves the plan?

    Truth: take a road user away and plan again with the same noise. Families: shares of the pressure, integrated
    gradients, gradient SHAP, occlusion, Shapley sampling, attention rollout, nearest, lowest TTC. Deletion and
    insertion curves, infidelity, sanity checks, and processor time. Needs captum: pip install 'radp[evaluate]'.

    Example:
        radp evaluate faithfulness runs/val --moments 64 --out runs/faithfulness
        radp simulate --planner radp-mini --scenarios sumo14-val --keep-plans --out runs/val
    """

    run: Positional[Path]
    """Folder of radp simulate with a learned planner."""
    out: Path | None = None
    """Folder for faithfulness.md and faithfulness.json; nothing is written if not given."""
    moments: int = 32
    """Moments, spread evenly over the drives."""
    sanity: int = 8
    """Of them also asked with random weights."""
    seed: int = 0
    """Of moments, noise and what families draw."""
    allow_missing: bool = False
    """Go on with the drives that are there if the run lacks some; otherwise it is refused."""
    json: bool = False
    """Print JSON instead of the table."""

    def __call__(self) -> int:
        from radp.cli.data import open_whole_run
        from radp.evaluation.faithfulness import measure_faithfulness
        from radp.report.faithfulness_table import faithfulness_json, faithfulness_table

        if self.moments < 1:
            raise BadInput(f"moments is {self.moments}, expected at least 1")
        run = open_whole_run(self.run, self.allow_missing)
        found = measure_faithfulness(run, self.moments, self.sanity, self.seed)
        where = f"{run.job.planner} on {Path(run.job.scenarios).name}, {run.job.agents} agents"
        text, data = faithfulness_table(found, where).markdown(), faithfulness_json(found)
        print(json_text(data) if self.json else text)
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            (self.out / "faithfulness.md").write_text(text + "\n")
            (self.out / "faithfulness.json").write_text(json_text(data) + "\n")
        return 0
