"""radp data samples: training samples from logged drives."""

from __future__ import annotations

from pathlib import Path


def make_samples(scenarios: str, out: Path, stride: int = 10, other_egos: int = 8, workers: int = 2) -> int:
    """Take training samples from logs: every long enough vehicle may be the ego.

    What is written are the logs and where the samples are in them; scenes are built when they are read.

    Example:
        radp data samples --scenarios runs/sumo-train --out runs/samples

    Args:
        scenarios: Packaged split, store folder, or neutral JSON.
        out: Folder to write; the same command goes on where it was stopped.
        stride: Frames (0.1 s) between two samples of one ego.
        other_egos: Vehicles taken as the ego beside the logged one, at most.
        workers: Processes.
    """
    from radp.scenario.splits import open_split
    from radp.scene.log_samples import SampleChoice, write_log_samples

    choice = SampleChoice(stride=stride, other_egos=other_egos)
    samples = write_log_samples(out, open_split(scenarios), choice, workers)
    print(f"{out}: {len(samples)} samples from {len(samples.notes)} logs")
    return 0
