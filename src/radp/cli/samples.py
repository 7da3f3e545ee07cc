"""radp data samples: training samples from logged drives."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


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
    stride: int = 10
    """Frames (0.1 s) between two samples of one ego."""
    other_egos: int = 8
    """Vehicles taken as the ego beside the logged one, at most."""
    workers: int = 2
    """Processes."""
    allow_missing: bool = False
    """Take what can be read of a store that is incomplete."""

    def __call__(self) -> int:
        from radp.cli.data import say_missing
        from radp.scenario.splits import open_split
        from radp.scene.log_samples import SampleChoice, write_log_samples

        choice = SampleChoice(stride=self.stride, other_egos=self.other_egos)
        split = open_split(self.scenarios, self.allow_missing)
        say_missing(split)
        samples = write_log_samples(self.out, split, choice, self.workers)
        print(f"{self.out}: {len(samples)} samples from {len(samples.notes)} logs")
        return 0
