"""The bench: its drives are what it says, and its figures are there."""

from __future__ import annotations

import numpy as np
import pytest

from radp.bench.metrics import bench_metrics, made_rollout


def test_made_drives_have_thirty_vehicles_and_150_samples() -> None:
    rollout = made_rollout(1)
    assert len(rollout.time_us) == 150
    assert (rollout.agents.type == 0).sum() == 30
    assert rollout.agents.state.shape[1] == 150
    np.testing.assert_array_equal(rollout.ego, made_rollout(1).ego)
    assert not np.array_equal(rollout.ego, made_rollout(2).ego)


@pytest.mark.slow
def test_bench_has_its_keys() -> None:
    figures = bench_metrics()
    assert set(figures["metrics_ms_per_scenario"]) == {"1", "64"}
    assert min(figures["metrics_ms_per_scenario"].values()) > 0.0
    assert sum(figures["metrics_ms_by_part"].values()) > 0.0
