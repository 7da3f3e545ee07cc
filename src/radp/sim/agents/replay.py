"""Traffic that does what the log says, whatever the ego does."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from radp.scenario import Box, Scenario


class ReplayAgents:
    """B worlds, A = most objects of any world: the boxes of every frame straight from the log, all types.

    Rows beyond a world's own objects are never valid; a world whose log has ended stays at its last frame.
    Arrays returned are read-only views.
    """

    def __init__(self, scenarios: Sequence[Scenario]) -> None:
        worlds, objects = len(scenarios), max((len(s.tracks) for s in scenarios), default=0)
        frames = max((s.frames for s in scenarios), default=1)
        self.ids = tuple(s.tracks.ids for s in scenarios)
        self.type = np.zeros((worlds, objects), dtype=np.uint8)
        self.size = np.zeros((worlds, objects, 3))
        self._state = np.zeros((frames, worlds, objects, len(Box)))
        self._valid = np.zeros((frames, worlds, objects), dtype=bool)
        for b, scenario in enumerate(scenarios):
            tracks = scenario.tracks
            own = slice(0, len(tracks))
            frame = scenario.start + np.minimum(np.arange(frames), scenario.frames - 1)
            self.type[b, own], self.size[b, own] = tracks.type, tracks.size
            self._state[:, b, own] = tracks.state[:, frame].swapaxes(0, 1)
            self._valid[:, b, own] = tracks.valid[:, frame].T
        self._state.setflags(write=False)
        self._valid.setflags(write=False)

    def reset(self, ego: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """ego (B, 11), not used -> state (B, A, 5), valid (B, A) of sample 0."""
        return self._state[0], self._valid[0]

    def step(self, i: int, ego: np.ndarray, dt: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sample index i, ego (B, 11) and dt (B,), both not used -> state (B, A, 5), valid (B, A) of sample i + 1."""
        frame = min(i + 1, len(self._state) - 1)
        return self._state[frame], self._valid[frame]
