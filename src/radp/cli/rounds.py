"""radp train rounds: learning in the loop, round by round."""

from __future__ import annotations

from collections.abc import Sequence, Sized
from dataclasses import asdict, dataclass, field
from pathlib import Path

from radp.evaluation.settings import Rounds
from radp.runs.engine import Engine
from radp.runs.json_text import json_text
from radp.training.settings import BaseConfig, LoopConfig


@dataclass(frozen=True, kw_only=True)
class TrainRounds:
    """Let a planner drive, let an expert take over before it collides, and go on training on both, round by round.

    A round is kept only if the planner does not collide more on the dev scenarios.

    Example:
        radp train rounds --start runs/base/model --scenarios runs/train --data runs/samples --out runs/rounds
    """

    data: tuple[Path, ...]
    """Samples to go on learning from beside the takeovers."""
    out: Path
    """Run folder; the same command resumes it."""
    share: float = 0.3
    """Share of the takeovers in every batch; the other folders share the rest by their size."""
    threads: int = 1
    """Torch threads."""
    workers: int = 2
    """Processes for driving."""
    where: Engine = field(default_factory=Engine)
    plan_timeout: float | None = None
    """Seconds within which a planner must answer, else that drive fails and the others go on; the first call may
    compile for a minute."""
    json: bool = False
    """Print the rounds as JSON."""
    rounds: Rounds
    loop: LoopConfig = field(
        default_factory=lambda: LoopConfig(steps=6_000, batch=16, lr=5e-4, warmup=300, schedule="constant", decay=1_500)
    )

    def __call__(self) -> int:
        import torch

        from radp.evaluation.rounds import remaining, run_rounds
        from radp.model.checkpoint import load_model
        from radp.model.paths import model_path
        from radp.planners.diffusion import scene_config
        from radp.runs.errors import BadInput
        from radp.runs.folder import RunFolder
        from radp.training.base import train_base
        from radp.training.data import Mixture, open_samples

        if not 0.0 < self.share < 1.0:
            raise BadInput(f"share is {self.share}, expected more than 0 and less than 1")
        for path in self.data:
            if not path.is_dir():
                raise BadInput(f"{path} is no folder of samples")
        torch.set_num_threads(self.threads)

        def train(model_name: str, taken_over: Sequence[Path], folder: Path) -> Path:
            model = load_model(model_path(model_name))
            config, scenes = BaseConfig(model=model.config, loop=self.loop), scene_config(model.config)
            usual, new = ([open_samples(path, scenes) for path in paths] for paths in (self.data, taken_over))
            mixture = Mixture([*usual, *new], [*_by_size(usual, 1.0 - self.share), *_by_size(new, self.share)])
            facts = {"data": [*self.data, *taken_over], "start_from": model_name}
            run = RunFolder.create(folder, "train base", config, self.loop.seed, {"threads": self.threads}, facts)
            return train_base(config, run, mixture, start_from=model)

        done = run_rounds(self.rounds, train, self.out, self.workers, self.plan_timeout)
        if self.json:
            print(json_text([asdict(one) for one in done]))
            return 0
        for number, one in enumerate(done):
            verdict = "kept" if one.kept else "not kept"
            change = f"collision {100 * one.collision_before:.1f} -> {100 * one.collision_after:.1f}"
            score = f"score {100 * one.score_before:.1f} -> {100 * one.score_after:.1f}"
            print(f"round {number}: {change}, {score}, {verdict}")
        print(remaining(done, self.rounds))
        return 0


def _by_size(sources: Sequence[Sized], total: float) -> list[float]:
    """Shares that add up to `total`, in the proportion of the sources' sizes."""
    counts = [len(source) for source in sources]
    return [total * count / sum(counts) for count in counts]
