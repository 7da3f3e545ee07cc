"""How fast scenes are built and samples are read, on this machine and one core."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
import torch

from radp.scenario import Scenario
from radp.scene.builder import PUBLISHED, SceneConfig, build_scenes
from radp.scene.log_samples import write_log_samples
from radp.scene.npz import write_npz
from radp.scene.samples import Samples, SampleStore, SampleWriter, iter_batches
from radp.scene.scene import TRAILING_SHAPES, Scene
from radp.scene.settings import SampleChoice
from radp.sim.replay import observe_logs
from radp.sources.synthetic import make_scenario

SCENARIOS = 64
AGENTS = 40
BATCHES = (1, 64)
REPEATS = 5
READ_BATCH = 64


def bench_scene(seconds: float = 1.0) -> dict[str, Any]:
    """Scenes per second at batch 1 and 64, from 64 synthetic crossings with 40 vehicles each: median of 5 rounds."""
    scenarios = [make_scenario(seed, agents=AGENTS) for seed in range(SCENARIOS)]
    return {
        name: {str(batch): _build_rate(scenarios, batch, config, seconds) for batch in BATCHES}
        for name, config in (
            ("scenes_per_s", PUBLISHED),
            ("scenes_per_s_driving_route", SceneConfig(route_order="driving")),
        )
    }


def _build_rate(scenarios: Sequence[Scenario], batch: int, config: SceneConfig, seconds: float) -> float:
    starts = range(0, len(scenarios), batch)
    views = [observe_logs(scenarios[i : i + batch], step) for step in (0, 40) for i in starts]
    return _per_second(lambda: sum(len(build_scenes(view, config)) for view in views), seconds)


def bench_data(samples: int = 2048) -> dict[str, Any]:
    """Shuffled batches of 64 from the same samples as a folder of .npz, as a sample store, and as logs, all in one run.

    Files were just written, so all three are read from memory; kilobytes are per sample on the disk.
    """
    scenarios = [make_scenario(seed) for seed in range(max(1, samples // 140))]
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        logs = write_log_samples(root / "logs", scenarios, SampleChoice(reach=1_000.0))
        count = min(samples, len(logs))
        with SampleWriter(root / "store") as writer:
            for first in range(0, count, READ_BATCH):
                scene = logs.read(range(first, min(first + READ_BATCH, count)))
                writer.append(scene)
                names = [f"{first + i:06d}" for i in range(len(scene))]
                write_npz(root / "npz", scene, ["synthetic"] * len(scene), names)
        sources: dict[str, Samples] = {
            "npz": _BareNpz(root / "npz"),
            "store": SampleStore.open(root / "store"),
            "logs": logs,
        }
        rates = {name: _read_rate(source) for name, source in sources.items()}
        return {
            "samples_per_s_store": rates["store"],
            "samples_per_s_npz": rates["npz"],
            "samples_per_s_logs": rates["logs"],
            "ratio": rates["store"] / rates["npz"],
            "ratio_logs": rates["logs"] / rates["npz"],
            "kilobytes_store": _kilobytes(root / "store") / count,
            "kilobytes_npz": _kilobytes(root / "npz") / count,
            "kilobytes_logs": _kilobytes(root / "logs") / len(logs),
            "samples": count,
        }


class _BareNpz:
    """The least work with which a folder of .npz can be read: no checks, arrays stacked to a batch."""

    def __init__(self, folder: Path) -> None:
        self.files = sorted(folder.glob("*.npz"))

    def __len__(self) -> int:
        return len(self.files)

    def read(self, indices: Sequence[int] | np.ndarray) -> Scene:
        samples = []
        for i in indices:
            with np.load(self.files[i], allow_pickle=False) as arrays:
                samples.append({name: arrays[name] for name in TRAILING_SHAPES})
        fields: dict[str, Any] = {
            name: torch.from_numpy(np.stack([sample[name] for sample in samples])) for name in TRAILING_SHAPES
        }
        return Scene(**fields)


def _read_rate(samples: Samples) -> float:
    """Samples per second over shuffled epochs."""
    generator = torch.Generator().manual_seed(0)
    return _per_second(lambda: sum(len(scene) for scene in iter_batches(samples, READ_BATCH, generator)), 0.0)


def _per_second(work: Callable[[], int], seconds: float) -> float:
    """Median over 5 rounds of what `work` counts a second; a round repeats it for `seconds`, one more warms up."""
    work()
    rates = []
    for _ in range(REPEATS):
        done, start = 0, time.perf_counter()
        while done == 0 or time.perf_counter() - start < seconds:
            done += work()
        rates.append(done / (time.perf_counter() - start))
    return median(rates)


def _kilobytes(folder: Path) -> float:
    return sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e3
