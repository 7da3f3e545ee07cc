"""radp data drive: closed-loop drives as logs to learn from."""

from __future__ import annotations

from pathlib import Path


def drive(
    scenarios: str,
    out: Path,
    planner: str = "pdm_careful",
    after: str = "",
    run: Path | None = None,
    takeovers: int = 1,
    min_score: float = 0.8,
    agents: str = "reactive",
    seed: int = 0,
    limit: int | None = None,
    workers: int = 2,
) -> int:
    """Drive scenarios and keep what was executed as new logs, if it went well.

    The store holds the ego and the road users as they really moved; `radp data samples --other-egos 0` takes training
    samples from it. With `after`, that planner drives first and `planner` takes over at a random moment, or 1 to 3 s
    before the collisions of `run`; the log then begins 2 s before that moment.

    Example:
        radp data drive --scenarios runs/train --out runs/driven
        radp simulate --planner runs/base/model --scenarios runs/train --out runs/own
        radp data drive --scenarios runs/train --after runs/base/model --run runs/own --out runs/taken-over

    Args:
        scenarios: Packaged split, store folder, or neutral JSON.
        out: Folder of the new store; the same command goes on where it was stopped.
        planner: Whose driving is the demonstration.
        after: Planner that drives first; nobody by default.
        run: Finished run of that planner on the same scenarios with the same seed: where it collided.
        takeovers: Takeovers of each scenario, at different moments.
        min_score: Least score of the demonstrated part; a failed gate is never kept.
        agents: reactive or nonreactive.
        seed: Decides moments and noise.
        limit: Take the first scenarios only.
        workers: Processes.
    """
    from radp.sources.driven import Demonstrations, demonstrate

    choice = Demonstrations(
        scenarios=scenarios, planner=planner, after=after, run=run, takeovers=takeovers, min_score=min_score,
        agents=agents, seed=seed, limit=limit,
    )  # fmt: skip
    card = demonstrate(choice, out, workers)
    print(f"{out}: {card['scenarios']} driven logs kept, {len(card['failed'])} refused")
    return 0
