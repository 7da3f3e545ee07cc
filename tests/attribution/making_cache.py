"""A small cache in small parts, made here or by a process that may be killed (python -m)."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np

import radp.attribution.cache as module
from radp.attribution.cache import Cache, write_cache
from radp.attribution.calibration import Calibration
from radp.planners.diffusion import scene_config
from radp.rules import default_rules
from radp.scene.log_samples import LogSamples, write_log_samples
from radp.scene.settings import SampleChoice
from radp.sources.synthetic import make_scenario
from tests.planners.test_learned import SMALL, awake

PART, COUNT = 3, 31
CONFIG = replace(SMALL, agents=4, lanes=4)
SCALES = Calibration(tuple(rule.name for rule in default_rules()), (0.5, 0.1, 0.2, 0.3, 2.0, 0.05), samples=10)


def make_samples(path: Path) -> None:
    write_log_samples(path, [make_scenario(3, agents=6)], SampleChoice(stride=2, other_egos=2, reach=1_000.0))


def make_cache(path: Path, data: Path, scales: Calibration = SCALES, seed: int = 5, workers: int = 1) -> Cache:
    samples = LogSamples.open(data, scene_config(CONFIG, rules=True))
    rows = np.random.default_rng(0).permutation(len(samples))[:COUNT]
    return write_cache(path, awake(CONFIG), samples, scales, rows, seed, workers)


if __name__ == "__main__":
    module.PART = PART
    make_cache(Path(sys.argv[1]), Path(sys.argv[2]))
