"""radp data drive: closed-loop drives as logs to learn from."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from radp.runs.engine import Engine
from radp.sources.settings import Demonstrations


@dataclass(frozen=True, kw_only=True)
class DataDrive:
    """Drive scenarios and keep what was executed as new logs, if it went well or, with --no-gates, as it was.

    The store holds the ego and the road users as they really moved; `radp data samples --other-egos 0` takes training
    samples from it. With `after`, that planner drives first and `planner` takes over at a random moment, or 1 to 3 s
    before the failures of `run` (a collision at fault, or off the road); the log then begins 2 s before that moment.

    Example:
        radp data drive --scenarios runs/train --out runs/driven
        radp simulate --planner runs/base/model --scenarios runs/train --out runs/own
        radp data drive --scenarios runs/train --after runs/base/model --run runs/own --out runs/taken-over
        radp data drive --scenarios runs/train --planner runs/base/model --min-score 0 --no-gates --out runs/own-logs
    """

    out: Path
    """Folder of the new store; the same command goes on where it was stopped."""
    workers: int = 2
    """Processes."""
    where: Engine = field(default_factory=Engine)
    plan_timeout: float | None = None
    """Seconds within which a planner must answer, else that drive fails and the others go on; the first call may
    compile for a minute."""
    choice: Demonstrations

    def __call__(self) -> int:
        from radp.sources.driven import demonstrate

        card = demonstrate(self.choice, self.out, self.workers, self.plan_timeout)
        print(f"{self.out}: {card['scenarios']} driven logs kept, {len(card['failed'])} refused")
        return 0
