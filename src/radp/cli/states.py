"""radp evaluate states: avoidance or caution, before anything is driven."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from radp.evaluation.settings import StateWatch
from radp.runs.json_text import json_text


@dataclass(frozen=True, kw_only=True)
class EvaluateStates(StateWatch):
    """Compare plans of a base planner and of aligned ones on held-out states of the base's own drives.

    On focus states, where the base's plan meets somebody or leaves the road within 4 s, alignment should lower that
    share; on ordinary states it should move little. The samples are those of drives that alignment has not seen. With
    `out`, also written: OUT/states.md and OUT/states.json.

    Example:
        radp data drive --scenarios runs/train@every-8+1 --planner runs/base/model --min-score 0 --no-gates \\
            --out runs/held
        radp data samples --scenarios runs/held --other-egos 0 --stride 6 --future 40 --out runs/held-samples
        radp evaluate states --planners runs/base/model runs/avoid/planner --data runs/held-samples --out runs/states
    """

    data: Path
    """Samples made by `radp data samples` from driven logs."""
    focus: Path | None = None
    """List made by `radp train focus --own` with the base from these samples; searched for if not given."""
    out: Path | None = None
    """Folder for the table; nothing is written if not given."""
    threads: int = 1
    """Torch threads."""
    json: bool = False
    """Print JSON instead of the table."""

    def __call__(self) -> int:
        import torch

        from radp.evaluation.states import watch_states
        from radp.report.states_table import states_table
        from radp.runs.files import write_json_atomically

        torch.set_num_threads(self.threads)
        rows = watch_states(self, self.data, self.focus)
        text, data = states_table(rows).markdown(), [row.to_json() for row in rows]
        if self.out is not None:
            self.out.mkdir(parents=True, exist_ok=True)
            (self.out / "states.md").write_text(text + "\n")
            write_json_atomically(self.out / "states.json", data)
        print(json_text(data) if self.json else text)
        return 0
