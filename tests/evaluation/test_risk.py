"""Risk from executed states: windows by hand, severities of drives that are known, and no way to the rules."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace

import grimp
import numpy as np
import pytest

from radp.evaluation.endpoints import ENDPOINTS, Endpoint
from radp.evaluation.risk import future_risk, severities
from radp.metrics.score import evaluate
from radp.scenario import Ego
from radp.sim.rollout import Rollout, logged_agents
from radp.sources.synthetic import make_scenario

WORST = Endpoint("x", "x", 0.4, "max", 0.0, "")
LAST = Endpoint("x", "x", 0.4, "last", 0.0, "")


def test_risk_knows_nothing_of_the_rules():
    code = "import sys, radp.evaluation.risk; sys.exit(any(m.startswith('radp.rules') for m in sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    graph = grimp.build_graph("radp")  # sees imports inside functions as well
    rules = {"radp.rules", *graph.find_descendants("radp.rules")}
    assert not rules & graph.find_upstream_modules("radp.evaluation.risk")
    assert rules & graph.find_upstream_modules("radp.attribution.teacher")  # the graph does see them


def test_windows_are_cut_at_the_end_and_count_with_half_of_them_left():
    severity = np.array([[0.0, 1.0, 5.0, 2.0, 3.0, 0.0], [7.0, 0.0, 1.0, np.nan, np.nan, np.nan]])
    lengths = np.array([6, 3])
    np.testing.assert_array_equal(
        future_risk(severity, lengths, WORST),
        [[5, 5, 5, 3, np.nan, np.nan], [7, np.nan, np.nan, np.nan, np.nan, np.nan]],
    )
    np.testing.assert_array_equal(
        future_risk(severity, lengths, LAST),
        [[3, 0, 0, 0, np.nan, np.nan], [1, np.nan, np.nan, np.nan, np.nan, np.nan]],
    )


@pytest.mark.parametrize("endpoint", ENDPOINTS, ids=lambda e: e.name)
def test_windows_equal_a_plain_loop(endpoint):
    draw = np.random.default_rng(0)
    lengths = np.array([1, 30, 100, 149])
    severity = np.where(np.arange(149) < lengths[:, None], draw.normal(size=(4, 149)), np.nan)
    found = future_risk(severity, lengths, endpoint)
    steps = round(endpoint.window / 0.1)
    for i, length in enumerate(lengths):
        for t in range(149):
            window = severity[i, t : min(t + steps, length - 1) + 1]
            if len(window) - 1 < steps / 2 or t >= length:
                assert np.isnan(found[i, t])
            else:
                assert found[i, t] == (window.max() if endpoint.aggregate == "max" else window[-1])


def test_a_severity_that_is_not_defined_in_the_window_gives_no_risk():
    found = future_risk(np.array([[0.0, np.nan, 1.0, 1.0, 1.0, 1.0, 1.0]]), np.array([7]), WORST)
    assert np.isnan(found[0, :2]).all() and found[0, 2] == 1.0


def logged_drive() -> Rollout:
    scenario = make_scenario(0, agents=4, turn="straight")
    samples = scenario.frames - 1
    window = slice(scenario.start, scenario.start + samples)
    return Rollout(scenario, scenario.time_us[window], scenario.ego[window], logged_agents(scenario, samples))


def test_severities_of_the_expert_itself():
    drive = logged_drive()
    found = severities(drive, evaluate(drive))
    assert set(found) == {e.name for e in ENDPOINTS}
    assert all(values.shape == (len(drive.ego),) for values in found.values())
    assert found["collision"].max() == 0.0 and found["goal"].max() == 0.0
    assert found["lane"].max() < 0.0  # inside the route


def test_an_overlap_is_measured_in_square_metres():
    drive = logged_drive()
    tracks = drive.agents
    state, valid, size = tracks.state.copy(), tracks.valid.copy(), tracks.size.copy()
    t = 20
    heading = drive.ego[t, Ego.HEADING]
    center = drive.ego[t, :2] + 1.461 * np.array([np.cos(heading), np.sin(heading)])
    state[0, t, :3], valid[0, t], size[0, :2] = (*center, heading + np.pi / 2), True, (8.0, 1.0)
    crossed = replace(drive, agents=replace(tracks, state=state, valid=valid, size=size))
    found = severities(crossed, evaluate(crossed))["collision"]
    assert found[t] == pytest.approx(2.297, abs=1e-6)  # a bar of 1 m across the whole width


def test_standing_still_leaves_the_progress_to_the_expert():
    drive = logged_drive()
    stands = drive.ego.copy()
    stands[:] = stands[0]
    stands[:, Ego.VX : Ego.VX + 2] = 0.0
    parked = replace(drive, ego=stands)
    deficit = severities(parked, evaluate(parked))["goal"]
    assert deficit[0] == 0.0 and deficit[-1] > 0.8 and (np.diff(deficit) >= -1e-9).all()


def test_dynamics_are_ratios_to_their_bounds():
    drive = logged_drive()
    ego = drive.ego.copy()
    ego[:, Ego.VX], ego[:, Ego.AX], ego[:, Ego.YAW_RATE] = 5.0, -4.0, 0.0
    ego[10, Ego.AX], ego[20, Ego.YAW_RATE] = 3.0, 1.8
    found = severities(replace(drive, ego=ego), evaluate(drive))
    assert found["kinematics"][0] == pytest.approx(0.5)  # braking 4 of 8
    assert found["kinematics"][20] == pytest.approx(2.0)  # 9 m/s2 across, 4.5 allowed
    assert found["comfort"][10] == pytest.approx(70.0 / 8.37)


def test_a_failed_drive_has_no_severities():
    drive = replace(logged_drive(), failure="lost")
    assert all(np.isnan(values).all() for values in severities(drive, evaluate(drive)).values())
