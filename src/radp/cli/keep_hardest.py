"""radp data keep-hardest: the scenarios that a planner drove worst, as a split of their own."""

from __future__ import annotations

from pathlib import Path


def keep_hardest(run: Path, out: Path, per_kind: int = 20) -> int:
    """Keep the scenarios of each kind that a run of radp simulate scored lowest.

    Example:
        radp data keep-hardest --run runs/pool-pdm --out runs/sumo14-hard

    Args:
        run: Folder of a finished run of radp simulate.
        out: New folder for the store.
        per_kind: Scenarios to keep of each kind.
    """
    from radp.evaluation.closed_loop import Run
    from radp.evaluation.hardest import hardest_tokens, write_selection

    finished = Run.open(run)
    tokens = hardest_tokens(finished, per_kind)
    card = write_selection(finished.split, tokens, out)
    print(f"{out}: {card.scenarios} scenarios of {len(finished.split)}, {card.with_hazard} with a hazard")
    return 0
