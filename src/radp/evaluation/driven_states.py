"""Samples from closed-loop drives: the states that a planner met while driving, as it will meet them again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from radp.evaluation.closed_loop import Run
from radp.runs.errors import BadInput
from radp.runs.folder import RUN
from radp.scenario import Scenario
from radp.scene.builder import SceneConfig, scenes_from_log
from radp.scene.samples import Samples
from radp.scene.scene import Scene
from radp.sim.driven_log import driven_log
from radp.storage.shards import check_rows
from radp.training.data import open_samples

KEPT = 4  # drives in memory: rows in order read every drive once


class DrivenStates:
    """N executed states of the finished drives of a run, `stride` samples (0.1 s) apart, drive by drive; no futures.

    What is read at a state equals the scene that the planner saw there.
    """

    def __init__(self, path: Path | str, scenes: SceneConfig, stride: int, places: np.ndarray | None = None) -> None:
        """`places`: where the states are, if somebody has looked for them already."""
        if stride < 1:
            raise BadInput(f"stride is {stride}, expected at least 1")
        self.path, self.scenes, self.stride = Path(path), scenes, stride
        self.run = Run.open(path)
        self._log = lru_cache(KEPT)(self._read_log)
        if places is not None:
            self._places = places

    @cached_property
    def _places(self) -> np.ndarray:
        """(N, 2) scenario of the run, sample of its drive."""
        places = []
        for i, token in enumerate(self.run.split.tokens()):
            if token in self.run.store:
                rollout = self.run.store.read(self.run.split[i])
                if rollout.failure is None:
                    places += [(i, sample) for sample in range(0, len(rollout.time_us), self.stride)]
        if not places:
            raise BadInput(f"{self.path} holds no finished drives")
        return np.array(places, dtype=np.int64)

    def __len__(self) -> int:
        return len(self._places)

    @property
    def scenario(self) -> np.ndarray:
        """(N,) number of the run's scenario that each state is of."""
        return self._places[:, 0]

    def _read_log(self, number: int) -> Scenario:
        return driven_log(self.run.store.read(self.run.split[number]))

    def read(self, indices: Sequence[int] | np.ndarray) -> Scene:
        """(B,) positions -> Scene of B states in that order."""
        scenes = []
        for number, sample in self._places[check_rows(indices, len(self))]:
            log = self._log(int(number))
            scenes.append(scenes_from_log(log, [log.start + int(sample)], self.scenes, with_future=False))
        return Scene.cat(scenes)

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process opens the run itself, and gets the places: to find them, every drive must be read."""
        return DrivenStates, (self.path, self.scenes, self.stride, self._places)


def open_states(path: Path | str, scenes: SceneConfig, stride: int) -> Samples:
    """States of the drives of a run folder, or samples as training reads them."""
    path = Path(path)
    if RUN.describes(path):
        return DrivenStates(path, scenes, stride)
    return open_samples(path, scenes, future=1)  # neither planner nor teacher looks ahead


def chosen_rows(samples: Samples, count: int, seed: Sequence[int]) -> np.ndarray:
    """(n,) at most `count` rows drawn without repetition; states of drives in their own order, to be read at once."""
    rows = np.random.default_rng(seed).permutation(len(samples))[:count]
    return np.sort(rows) if isinstance(samples, DrivenStates) else rows
