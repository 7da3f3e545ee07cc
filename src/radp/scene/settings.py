"""Which moments become samples: one place for command line, Python call and store. Imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class SampleChoice:
    """Which moments of a log become samples."""

    stride: int = 10
    """Frames (0.1 s) between two samples of one ego."""
    history: int = 20
    """Frames of its past that an ego must have."""
    future: int = 80
    """Frames of its future that an ego must have. Samples with fewer than 80 are for alignment on own states, not for
    imitation.
    """
    other_egos: int = 1_000
    """Vehicles taken as the ego beside the logged one, at most; spread evenly over the possible ones."""
    reach: float = 60.0
    """Metres from the logged ego within which they are taken: a log shows what was around that one."""
    logs_per_shard: int = 64
    """Logs in one file of the store."""
