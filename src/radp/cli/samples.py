"""radp data samples: training samples from logged drives."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from radp.runs.engine import Engine
from radp.scene.settings import SampleChoice


@dataclass(frozen=True)
class DataSamples:
    """Take training samples from logs: every long enough vehicle may be the ego.

    What is written are the logs and where the samples are in them; scenes are built when they are read.

    Example:
        radp data samples --scenarios runs/sumo-train --out runs/samples
    """

    scenarios: str
    """Packaged split, store folder, or neutral JSON."""
    out: Path
    """Folder to write; the same command goes on where it was stopped."""
    workers: int = 2
    """Processes."""
    where: Engine = field(default_factory=Engine)
    allow_missing: bool = False
    """Take what can be read of a store that is incomplete."""
    choice: SampleChoice = field(default_factory=lambda: SampleChoice(other_egos=8))

    def __call__(self) -> int:
        from radp.cli.data import say_missing
        from radp.scenario.splits import open_split
        from radp.scene.log_samples import write_log_samples

        split = open_split(self.scenarios, self.allow_missing)
        say_missing(split)
        samples = write_log_samples(self.out, split, self.choice, self.workers)
        print(f"{self.out}: {len(samples)} samples from {len(samples.notes)} logs")
        return 0
