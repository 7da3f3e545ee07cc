"""radp data logs, radp data winners: drives of finished runs as logs to learn from, all of them or the better ones."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class DataLogs:
    """Keep the drives of a finished run as logs: the states that its planner met, whatever became of them.

    As `radp data drive --no-gates --min-score 0` would, without driving once more.

    Example:
        radp data logs --run runs/base --out runs/base-logs
    """

    run: Path
    """Finished run of radp simulate."""
    out: Path
    """New folder for the store."""

    def __call__(self) -> int:
        from radp.evaluation.winners import keep_drives

        print(f"{self.out}: {keep_drives(self.run, self.out)} drives kept")
        return 0


@dataclass(frozen=True, kw_only=True)
class DataWinners:
    """Keep, of scenarios in which a base planner fails, the drive of another planner that does not.

    A failure is a collision at fault, a time to collision below nuPlan's bound, or a way off the road. Of several
    winners the highest score is kept, from 1 s before the two drives part until 5 s after the base has failed.
    `radp data samples --other-egos 0 --future 40` takes states from them, `radp train focus --driven 1` lists those in
    which the base would go otherwise, and `radp train align --way ranked --copies` learns them.

    Example:
        radp data winners --base runs/base --runs runs/aligned runs/braked --out runs/won
    """

    base: Path
    """Finished run of the base planner."""
    runs: tuple[Path, ...]
    """Finished runs of other planners on the same scenarios, or on some of them, in the same traffic."""
    out: Path
    """New folder for the store."""

    def __call__(self) -> int:
        from radp.evaluation.winners import keep_winners

        counts = keep_winners(self.base, self.runs, self.out)
        failed, won = counts.pop("failed"), counts.pop("won")
        by = ", ".join(f"{name} {count}" for name, count in sorted(counts.items())) or "nobody"
        print(f"{self.out}: {won} drives kept ({by}) of {failed} scenarios in which the base fails")
        return 0
