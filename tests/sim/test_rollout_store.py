"""Drives on disk: every bit comes back, and damage is noticed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from radp.sim.rollout import Rollout, rollout_from_json, rollout_to_json
from radp.sim.rollout_store import RolloutStore
from radp.sim.settings import AGENT_MODES
from radp.sim.simulate import simulate
from radp.storage.errors import StoreError
from tests.sim.made_worlds import RandomPlanner, assert_same, short_scenarios


@pytest.fixture(params=AGENT_MODES)
def rollout(request: pytest.FixtureRequest) -> Rollout:
    return next(simulate(RandomPlanner(), short_scenarios(1), request.param, seed=3, keep_plans=True))


def test_round_trip(rollout: Rollout, tmp_path: Path) -> None:
    store = RolloutStore(tmp_path / "drives")
    store.clean()
    failed = replace(rollout, scenario=replace(rollout.scenario, token="b"), failure="step 2: lost", plans=None)
    shares = np.random.default_rng(0).random((len(rollout.ego), 5)).astype(np.float32)
    taught = replace(
        rollout,
        scenario=replace(rollout.scenario, token="c"),
        exact_pressures=rollout.pressures + 1,
        rule_costs=rollout.pressures + 2,
        agent_shares=shares,
        share_tracks=np.arange(5 * len(shares), dtype=np.int32).reshape(-1, 5) % (len(rollout.agents) + 1) - 1,
        predicted_tracks=np.zeros((len(shares), 2), dtype=np.int32),
        rules=("far", "fast"),
    )
    for drive in (rollout, failed, taught):
        store.write(drive)
        assert_same(store.read(drive.scenario), drive)
        assert drive.scenario.token in store
    assert "d" not in store


@pytest.mark.parametrize("token", ("a/b", "..", ".", "ünï c:d*", "%2F", "x" * 60, "x" * 300, "ü" * 300))
def test_any_token_is_a_file_name(token: str, tmp_path: Path) -> None:
    store = RolloutStore(tmp_path)
    assert store.path_of(token).parent == tmp_path
    rollout = next(simulate(RandomPlanner(), [replace(short_scenarios(1)[0], token=token)], "nonreactive"))
    store.write(rollout)
    assert token in store and f"{token}y" not in store
    assert store.read(rollout.scenario).scenario.token == token


def test_missing_damaged_and_foreign_files_are_named(rollout: Rollout, tmp_path: Path) -> None:
    store = RolloutStore(tmp_path)
    with pytest.raises(StoreError, match=r"synthetic_000000\.drive is missing"):
        store.read(rollout.scenario)
    store.write(rollout)
    other = replace(rollout.scenario, token="other")
    store.path_of("other").write_bytes(store.path_of(rollout.scenario.token).read_bytes())
    with pytest.raises(StoreError, match=r"other\.drive holds a drive of scenario 'synthetic_000000'"):
        store.read(other)
    whole = store.path_of("other").read_bytes()
    for damaged in (b"", b"PK", whole[: len(whole) // 2], whole[:-1] + bytes([whole[-1] ^ 1])):
        store.path_of("other").write_bytes(damaged)
        with pytest.raises(StoreError, match=r"other\.drive"):
            store.read(other)


def test_leftovers_of_a_killed_writer_are_removed(tmp_path: Path) -> None:
    (tmp_path / ".tmp-1-a.drive").write_bytes(b"half")
    store = RolloutStore(tmp_path)
    assert "a" not in store
    store.clean()
    assert list(tmp_path.iterdir()) == []


def test_neutral_json_round_trip(rollout: Rollout) -> None:
    again = rollout_from_json(rollout_to_json(replace(rollout, failure="why")))
    assert (again.agent_mode, again.planner, again.seed, again.failure) == (rollout.agent_mode, "random", 3, "why")
    assert_same(replace(again, failure=None), replace(rollout, plans=None, pressures=None))


def spoiled(rollout: Rollout, name: str, value: float) -> Rollout:
    array = getattr(rollout, name).copy()
    array[(-1,) * array.ndim] = value
    return replace(rollout, **{name: array})


def test_drives_with_right_checksums_and_wrong_content_are_refused(rollout: Rollout, tmp_path: Path) -> None:
    store, tracks = RolloutStore(tmp_path), np.full((len(rollout.ego), 2), 2**30, dtype=np.int32)
    wrong = {
        r"ego has shape \(.*, 10\)": replace(rollout, ego=rollout.ego[:, :10].copy()),
        r"ego has shape \(1,\)": replace(rollout, ego=np.zeros(1)),
        "ego holds a value that is not finite": spoiled(rollout, "ego", np.nan),
        r"ego holds 1e\+200": spoiled(rollout, "ego", 1e200),
        "time_us goes on by": spoiled(rollout, "time_us", int(rollout.time_us[-1]) + 10**9),
        "time_us does not increase": replace(rollout, time_us=rollout.time_us[::-1].copy()),
        r"time_us has shape \(1, 2\)": replace(rollout, time_us=rollout.time_us[None, :2].copy()),
        "expected 1 to": replace(rollout, time_us=np.arange(10_000) * 100_000, ego=np.zeros((10_000, 11))),
        "plans holds a value that is not finite": spoiled(rollout, "plans", np.inf),
        "plans has shape": replace(rollout, plans=rollout.plans[..., :3]),
        "plans holds float64": replace(rollout, plans=rollout.plans.astype(float)),
        "pressures has shape": replace(rollout, rules=("a", "b", "c", "d", "e")),
        "predicted_tracks points to": replace(rollout, predicted_tracks=tracks),
        "share_tracks points to": replace(rollout, share_tracks=tracks),
        "rows for": replace(rollout, plans=np.concatenate([rollout.plans] * 2)),
        "agent_mode": replace(rollout, agent_mode="sideways"),
    }
    if rollout.agent_mode == "reactive":
        agents = rollout.agents
        short, small = replace(agents, state=agents.state[:, :-1].copy()), replace(agents, size=-agents.size)
        wrong |= {
            "tracks.state has shape": replace(rollout, agents=short),
            "tracks.size holds": replace(rollout, agents=small),
        }
    for words, drive in wrong.items():
        store.write(drive)
        with pytest.raises(StoreError, match=f"(?s){words}.*delete it to drive the scenario again"):
            store.read(rollout.scenario)
    store.write(rollout)
    store.read(rollout.scenario)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e308])
def test_neutral_json_of_a_drive_with_wrong_states_is_refused(rollout: Rollout, value: float) -> None:
    data = rollout_to_json(rollout)
    data["ego"]["x"][3] = value
    with pytest.raises(ValueError, match="ego holds"):
        rollout_from_json(data)
