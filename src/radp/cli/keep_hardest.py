"""radp data keep-hardest: the scenarios that a planner drove worst, as a split of their own."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DataKeepHardest:
    """Keep the scenarios of each kind that a run of radp simulate scored lowest.

    Example:
        radp data keep-hardest --run runs/pool-pdm --out runs/sumo14-hard
    """

    run: Path
    """Folder of a finished run of radp simulate."""
    out: Path
    """New folder for the store."""
    per_kind: int = 20
    """Scenarios to keep of each kind."""

    def __call__(self) -> int:
        from radp.evaluation.closed_loop import Run
        from radp.evaluation.hardest import hardest_tokens, write_selection

        finished = Run.open(self.run)
        tokens = hardest_tokens(finished, self.per_kind)
        card = write_selection(finished.split, tokens, self.out)
        print(f"{self.out}: {card.scenarios} scenarios of {len(finished.split)}, {card.with_hazard} with a hazard")
        return 0
