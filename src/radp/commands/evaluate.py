"""radp evaluate: tables with intervals."""

from __future__ import annotations

from pathlib import Path
from typing import Literal


def evaluate_planners(
    planners: tuple[str, ...],
    splits: tuple[str, ...],
    out: Path,
    agents: tuple[Literal["reactive", "nonreactive"], ...] = ("reactive", "nonreactive"),
    base: str | None = None,
    limit: int | None = None,
    workers: int = 1,
    seed: int = 0,
) -> int:
    """Drive planners over splits in closed loop and print one table: every sub-score with its 95% interval.

    Drives that are there already are not driven again. The table is also written to OUT/planners.md.

    Example:
        radp evaluate planners --planners log_replay idm pdm_closed --splits sumo14-val --out runs/table

    Args:
        planners: Names, model folders, or your own as file.py:Class.
        splits: Packaged splits or stores.
        out: Folder for the runs and the table.
        agents: How the others move.
        base: A planner of the list to which the others are compared, paired by scenario.
        limit: At most this many scenarios of each split.
        workers: Processes.
        seed: Of the planners' randomness.
    """
    from radp.evaluation.planners import compare, table

    text = table(compare(planners, splits, agents, out, limit, workers, seed), base)
    (out / "planners.md").write_text(text + "\n")
    print(text)
    return 0
