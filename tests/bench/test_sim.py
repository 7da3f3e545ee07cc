"""The measurement measures what it says."""

from __future__ import annotations

import numpy as np
import pytest

from radp.bench import sim as bench


def test_figures_by_mode_and_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench, "SECONDS", 1e-9)
    monkeypatch.setattr(bench, "BATCHES", (1, 2))
    figures = bench.bench_sim()
    for mode in ("reactive", "nonreactive"):
        assert set(figures[f"{mode}_steps_per_s"]) == {"1", "2"}
        assert all(value > 0.0 for value in figures[f"{mode}_steps_per_s"].values())
        assert 25.0 < figures[f"{mode}_agents_near_ego"] <= bench.AGENTS


def test_worlds_are_driven_to_the_end() -> None:
    scenario = bench._keep_nearest(bench.make_scenario(0, agents=40, pedestrians=0, cones=0, frames=20))
    assert len(scenario.tracks) == bench.AGENTS
    world = bench._drive([scenario], "nonreactive", 18)
    assert world.step == 18
    assert np.hypot(*(world.ego[0, -1, :2] - scenario.ego[scenario.start, :2])) > 1.0
