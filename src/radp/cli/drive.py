"""radp data drive: closed-loop drives as logs to learn from."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DataDrive:
    """Drive scenarios and keep what was executed as new logs, if it went well.

    The store holds the ego and the road users as they really moved; `radp data samples --other-egos 0` takes training
    samples from it. With `after`, that planner drives first and `planner` takes over at a random moment, or 1 to 3 s
    before the collisions of `run`; the log then begins 2 s before that moment.

    Example:
        radp data drive --scenarios runs/train --out runs/driven
        radp simulate --planner runs/base/model --scenarios runs/train --out runs/own
        radp data drive --scenarios runs/train --after runs/base/model --run runs/own --out runs/taken-over
    """

    scenarios: str
    """Packaged split, store folder, or neutral JSON."""
    out: Path
    """Folder of the new store; the same command goes on where it was stopped."""
    planner: str = "pdm_careful"
    """Whose driving is the demonstration."""
    after: str = ""
    """Planner that drives first; nobody by default."""
    run: Path | None = None
    """Finished run of that planner on the same scenarios with the same seed: where it collided."""
    takeovers: int = 1
    """Takeovers of each scenario, at different moments."""
    min_score: float = 0.8
    """Least score of the demonstrated part; a failed gate is never kept."""
    agents: str = "reactive"
    """reactive or nonreactive."""
    seed: int = 0
    """Decides moments and noise."""
    limit: int | None = None
    """Take the first scenarios only."""
    workers: int = 2
    """Processes."""

    def __call__(self) -> int:
        from radp.sources.driven import Demonstrations, demonstrate

        chosen = {name: value for name, value in vars(self).items() if name not in ("out", "workers")}
        card = demonstrate(Demonstrations(**chosen), self.out, self.workers)
        print(f"{self.out}: {card['scenarios']} driven logs kept, {len(card['failed'])} refused")
        return 0
