"""Kernels against the slow reference, on drives that reach what ordinary ones do not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

import numpy as np
import pytest

from radp.metrics.score import evaluate
from radp.sim.rollout import Rollout
from tests.metrics.made_drives import patchwork_rollout, wandering_rollout
from tests.metrics.reference import Road, Slow

SEEDS = range(40)


def compare(rollout: Rollout) -> None:
    score, slow = evaluate(rollout), Slow(rollout, Road(rollout.scenario.map))
    assert score.details is not None
    assert [score.details.route.row(i).tolist() for i in range(slow.n)] == slow.route
    assert score.in_one_or_connected_lanes.tolist() == slow.connected
    assert [(c.frame, c.agent, c.type.name, c.at_fault) for c in score.collisions] == [c[:4] for c in slow.collisions]
    assert [c.delta_v for c in score.collisions] == pytest.approx([c[4] for c in slow.collisions], abs=1e-7)
    np.testing.assert_allclose(score.ttc, slow.ttc, atol=1e-9)
    assert score.metrics["drivable_area_compliance"].value == slow.drivable
    np.testing.assert_allclose(score.series["driving_direction_compliance"], slow.direction_series, atol=1e-6)
    assert score.metrics["ego_progress_along_expert_route"].value == pytest.approx(slow.progress, abs=1e-7)
    assert score.metrics["speed_limit_compliance"].value == pytest.approx(slow.speed_limit, abs=1e-9)
    for name, values in slow.comfort.items():
        np.testing.assert_allclose(score.details.comfort.series[name], values, atol=1.1e-8, err_msg=name)


@pytest.mark.parametrize("made", [wandering_rollout, patchwork_rollout])
@pytest.mark.parametrize("seed", SEEDS)
def test_kernels_equal_the_slow_reference(made: Callable[[int], Rollout], seed: int) -> None:
    compare(made(seed))


@pytest.mark.parametrize("made", [wandering_rollout, patchwork_rollout])
def test_the_random_drives_reach_the_corners(made: Callable[[int], Rollout]) -> None:
    """A comparison that meets nothing proves nothing."""
    reached: Counter[str] = Counter()
    for seed in SEEDS:
        score = evaluate(made(seed))
        size = score.details.route.size
        values = {name: metric.value for name, metric in score.metrics.items()}
        reached.update(
            {
                "several lanes": int((size > 1).sum()),
                "no lane": int((size == 0).sum()),
                "connected": int(score.in_one_or_connected_lanes.sum()),
                "not connected": int((~score.in_one_or_connected_lanes).sum()),
                "time to collision": int(np.isfinite(score.ttc).sum()),
                "left the road": values["drivable_area_compliance"] == 0.0,
                "backwards": values["driving_direction_compliance"] < 1.0,
                "slower than the expert": 0.0 < values["ego_progress_along_expert_route"] < 1.0,
                "too fast": values["speed_limit_compliance"] < 1.0,
            }
        )
        reached.update(f"{collision.type.name} fault {collision.at_fault}" for collision in score.collisions)
    wanted = {"several lanes", "STOPPED_TRACK fault True", "ACTIVE_LATERAL fault True", "ACTIVE_FRONT fault True"}
    assert not {name for name in wanted | set(reached) if reached[name] == 0}, reached
