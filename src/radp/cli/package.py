"""radp train package: a base planner and its adapters as one planner folder."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class TrainPackage:
    """Make a planner folder of a base planner and adapters; those of several rounds become one.

    Adapters of a later round were trained upon the planner of the rounds before it; name them in that order. The folder
    refers to its base by name or by relative path.

    Example:
        radp train package --base runs/base/model --adapters runs/avoid/adapter --out runs/avoid/planner
        radp train package --base runs/base/model --adapters runs/r1/adapter runs/r2/adapter --out runs/planner
    """

    base: str
    """Packaged model or model folder that the first adapters were trained on."""
    adapters: tuple[Path, ...]
    """Folders of adapters, in the order of training."""
    out: Path
    """Planner folder to write."""
    weights: Path | None = None
    """Model folder of `radp train align --conditioned` whose adapters, if any, are the last: it then takes weights."""
    mean: bool = False
    """The adapters were trained side by side on the same base, for instance with several seeds: take their mean."""
    times: float = 1.0
    """How often what they add to the base counts: more than 1 does more of what was learnt, less than 1 less."""

    def __call__(self) -> int:
        from radp.planners.learned import package_planner

        print(package_planner(self.base, self.adapters, self.out, self.mean, self.weights, self.times))
        return 0
