"""radp train average: the mean of the weights of several models."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class TrainAverage:
    """Make one model of several that were trained from a common start: the mean of their weights.

    A model that learnt something new often forgets a little of what it knew; the mean of both mostly keeps either.

    Example:
        radp train average --models diffusion-planner-mini runs/stage-2/model --shares 0.5 0.5 --out runs/both
    """

    models: tuple[str, ...]
    """Packaged models or model folders."""
    out: Path
    """Model folder to write."""
    shares: tuple[float, ...] = ()
    """Share of each, 1 in all; equal when not given."""

    def __call__(self) -> int:
        from radp.model.average import average_models
        from radp.model.checkpoint import load_model, save_model
        from radp.model.paths import model_path

        mean = average_models([load_model(model_path(name)) for name in self.models], self.shares)
        names = [Path(name).name if Path(name).name != "model" else Path(name).parent.name for name in self.models]
        about = {"command": "train average", "models": names, "shares": list(self.shares)}
        print(save_model(mean, self.out, about))
        return 0
