"""The whole builder against an independent one, on random traffic and on every golden scenario."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from radp.scenario import ObjectType, Scenario
from radp.scenario.as_ego import as_ego, possible_egos
from radp.scenario.neutral_json import read_scenario
from radp.scene.builder import scenes_from_log
from radp.sources.synthetic import make_scenario
from tests.scene.reference_scene import reference_scene
from tests.shared_data import shared_params

TOLERANCE, RELATIVE = 2e-5, 2e-7  # m, and what float32 can tell of far points


def check(scenario: Scenario, frames: list[int]) -> None:
    scene = scenes_from_log(scenario, frames, short_future="zeros").validate()
    for b, frame in enumerate(frames):
        wanted, keys, on_route = reference_scene(scenario, frame)
        order = same_order(scene.lanes[b].numpy(), wanted["lanes"], keys)
        route = sorted(order[i] for i in on_route)[:25]
        for name, value in scene.items():
            found = value[b].numpy().astype(np.float64)
            if name.startswith("route"):  # rows of the lanes as they stand in this scene
                lanes = getattr(scene, name.removeprefix("route_"))[b].numpy()
                np.testing.assert_array_equal(found[: len(route)], lanes[route])
                assert not value[b, len(route) :].any()
                continue
            expected = wanted[name]
            if name.startswith("lanes"):
                found = found[order]
            if name.endswith("future"):  # pi and -pi are the same heading
                found, expected = _unit(found), _unit(expected)
            np.testing.assert_allclose(found, expected, atol=TOLERANCE, rtol=RELATIVE, err_msg=f"{name}, frame {frame}")


def same_order(found: np.ndarray, wanted: np.ndarray, keys: list[tuple[float, float]]) -> list[int]:
    """Rows of `found` in the order of `wanted`. Lanes may only change places if their distances are equal."""
    order = list(range(len(found)))
    for i, key in enumerate(keys):
        if not close(found[order[i]], wanted[i]):
            j = next((j for j in range(i + 1, len(keys)) if close(found[order[j]], wanted[i])), None)
            assert j is not None, f"lane {i} is not in the scene"
            np.testing.assert_allclose(key, keys[j], atol=1e-9, rtol=0)
            order[i], order[j] = order[j], order[i]
    return order


def close(found: np.ndarray, wanted: np.ndarray) -> bool:
    return np.allclose(found, wanted, atol=TOLERANCE, rtol=RELATIVE)


def _unit(future: np.ndarray) -> np.ndarray:
    return np.concatenate((future[..., :2], np.cos(future[..., 2:]), np.sin(future[..., 2:])), -1)


def shaken(scenario: Scenario, seed: int) -> Scenario:
    """Random kinds, random gaps in the tracks, and an ego that stands a little beside its log."""
    random = np.random.default_rng(seed)
    tracks = scenario.tracks
    valid = tracks.valid & (random.random(tracks.valid.shape) > 0.2)
    kinds = random.integers(0, len(ObjectType), len(tracks)).astype(np.uint8)
    state = np.where(valid[..., None], tracks.state, 0.0)
    ego = scenario.ego.copy()
    ego[:, :3] += random.normal(size=3) * [2.0, 2.0, 0.3]
    return replace(scenario, tracks=replace(tracks, valid=valid, type=kinds, state=state), ego=ego)


@pytest.mark.parametrize("seed", range(6))
def test_random_traffic(seed: int):
    scenario = make_scenario(seed, agents=30 + 10 * (seed % 3), pedestrians=20, cones=7)
    check(scenario, [0, 7, 60, 150])
    check(shaken(scenario, seed), [20, 90])


def test_from_another_vehicle():
    scenario = make_scenario(1, agents=20)
    for name in possible_egos(scenario, 101)[:3]:
        check(as_ego(scenario, name), [0, 30])


@pytest.mark.golden
@pytest.mark.parametrize("path", shared_params("golden/nuplan/closed_loop/*.scenario.json.gz"))
def test_golden_scenarios(path):
    scenario = read_scenario(path)
    check(scenario, list(range(0, len(scenario.time_us), 25)))
    check(shaken(scenario, 0), [30, 70])
