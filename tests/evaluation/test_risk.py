"""Risk from executed states: windows by hand, severities of drives that are known, and no way to the rules."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import astuple, replace

import grimp
import numpy as np
import pytest
from scipy.signal import savgol_filter

from radp.evaluation.endpoints import BESIDE, ENDPOINTS, EXECUTED, PAPER, READINGS, Endpoint
from radp.evaluation.risk import (
    ExecutedMotion,
    all_severities,
    future_risk,
    motion_of,
    polygon_of,
    severities,
    shortfall,
    shortfall_before,
    smooth_motion,
)
from radp.geometry.ragged import Polygons
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


def test_areas_by_the_even_odd_rule():
    """A square with a triangular hole, the triangle alone, and a line, which has no area."""
    square, triangle = [(0, 0), (4, 0), (4, 4), (0, 4)], [(1, 1), (3, 1), (2, 3)]
    areas = Polygons.from_rings([[square, triangle], [triangle], [[(0, 0), (1, 1)]]])
    assert [polygon_of(areas, i).area for i in range(3)] == [14.0, 2.0, 0.0]


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


@pytest.mark.parametrize("endpoint", (*PAPER, *BESIDE["main"]), ids=lambda e: e.name)
def test_windows_equal_a_plain_loop(endpoint):
    draw = np.random.default_rng(0)
    lengths = np.array([1, 30, 100, 149])
    severity = np.where(np.arange(149) < lengths[:, None], draw.normal(size=(4, 149)), np.nan)
    found = future_risk(severity, lengths, endpoint)
    steps, skipped = round(endpoint.window / 0.1), round(endpoint.begin / 0.1)
    of = {"max": np.max, "mean": np.mean, "last": lambda window: window[-1]}[endpoint.aggregate]
    for i, length in enumerate(lengths):
        for t in range(149):
            window = severity[i, t + skipped + (skipped > 0) : min(t + steps, length - 1) + 1]
            whole = steps - skipped
            if len(window) - (skipped == 0) < whole / 2 or t >= length:
                assert np.isnan(found[i, t])
            else:
                assert found[i, t] == pytest.approx(of(window), abs=1e-12)


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
    found = all_severities(drive, evaluate(drive))
    assert set(found) == set(EXECUTED) and set(severities(drive, evaluate(drive))) == {e.name for e in ENDPOINTS}
    assert all(values.shape == (len(drive.ego),) for values in found.values())
    assert found["collision"].max() == 0.0 and found["goal_same"].max() == 0.0
    assert found["goal_total"][0] > 0.9 and found["goal_total"][-1] < 0.02
    assert found["lane"].max() < 0.0  # inside the route
    assert found["speed"].min() == 0.0  # below the limit nothing counts


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
    found = all_severities(parked, evaluate(parked))
    deficit = found["goal_same"]
    assert found["goal"].min() == 1.0  # it could have rolled on, and did not
    assert deficit[0] == 0.0 and deficit[-1] > 0.8 and (np.diff(deficit) >= -1e-9).all()


def test_dynamics_are_ratios_to_their_bounds():
    drive = logged_drive()
    ego = drive.ego.copy()
    ego[:, Ego.VX], ego[:, Ego.AX], ego[:, Ego.YAW_RATE] = 5.0, -4.0, 0.0
    ego[10, Ego.AX], ego[20, Ego.YAW_RATE] = 3.0, 1.8
    jolted = replace(drive, ego=ego)
    found = all_severities(jolted, evaluate(drive))
    assert found["kinematics_raw"][0] == pytest.approx(0.5)  # braking 4 of 8
    assert found["kinematics_raw"][20] == pytest.approx(2.0)  # 9 m/s2 across, 4.5 allowed
    assert found["comfort_raw"][10] == pytest.approx(70.0 / 8.37)
    assert found["kinematics"][0] == pytest.approx(0.5) and found["kinematics"][20] < 1.5  # one sample is smoothed away
    assert found["comfort"][10] < 0.2 * found["comfort_raw"][10]
    straight = replace(jolted, ego=np.where(np.arange(11) >= Ego.YAW_RATE, 0.0, ego))
    series, motion = evaluate(straight).details.comfort.series, smooth_motion(straight)
    np.testing.assert_allclose(motion.along, series["lon_acceleration"], atol=1e-7)  # the metric's own, going straight
    np.testing.assert_allclose(motion.jerk_along, series["lon_jerk"], atol=1e-6)


def test_a_failed_drive_has_no_severities():
    drive = replace(logged_drive(), failure="lost")
    assert all(np.isnan(values).all() for values in all_severities(drive, evaluate(drive)).values())


def test_shortfall_by_hand():
    speed = np.full(101, 5.0)
    steady = 0.5 * np.arange(101)  # 5 m/s: 40 m in 8 s, in reach are 40 + 0.25 * 64 = 56 m
    short = shortfall(steady, speed)
    assert short[0] == pytest.approx(1 - 40 / 56) and short[40] == pytest.approx(1 - 30 / (30 + 0.25 * 36))
    np.testing.assert_allclose(shortfall(2 * steady, speed)[:20], 0.0)  # more than expected is no negative risk
    before = shortfall_before(steady, speed)
    assert np.isnan(before[:10]).all() and before[90] == pytest.approx(1 - 40 / 56)
    assert before[20] == pytest.approx(1 - 10 / (10 + 0.25 * 4))
    np.testing.assert_allclose(shortfall(np.zeros(101), np.zeros(101))[0], 1.0)


def test_readings_have_the_same_seven_risks_and_their_own_windows():
    assert [e.name for e in READINGS["main"]] == [e.name for e in READINGS["paper"]]
    late, mean = BESIDE["main"][:2]
    assert (late.begin, late.window, late.series) == (1.0, 2.0, "ttc") and mean.aggregate == "mean"
    assert {e.persistence for e in ENDPOINTS} <= set(EXECUTED)


def test_a_window_that_begins_later_does_not_see_the_present():
    late = Endpoint("x", "x", 0.4, "max", 0.0, "", begin=0.2)
    severity = np.array([[9.0, 8.0, 7.0, 1.0, 2.0, 3.0, 0.0]])
    np.testing.assert_array_equal(future_risk(severity, np.array([7]), late)[0], [2, 3, 3, 0, *[np.nan] * 3])


def test_motion_is_smoothed_as_scipy_does():
    scenario = make_scenario(4, agents=2, frames=60)
    ego = scenario.ego[scenario.start :].copy()
    ego[:, Ego.VX :] += np.random.default_rng(0).normal(size=ego[:, Ego.VX :].shape)
    rollout = Rollout(scenario, scenario.time_us[scenario.start :], ego, logged_agents(scenario, len(ego)))
    values = savgol_filter(motion_of(ego), 8, 2, mode="interp")
    rates = savgol_filter(values, 15, 2, deriv=1, delta=0.1, mode="interp")
    np.testing.assert_allclose(np.array(astuple(smooth_motion(rollout))), [*values, *rates], atol=1e-6)


def test_the_shortfall_before_is_known_from_the_first_second_on():
    progress, speed = np.arange(60) * 0.5, np.full(60, 10.0)
    short = shortfall_before(progress, speed, 3.0)
    assert np.isnan(short[:10]).all() and not np.isnan(short[10:]).any()
    assert short[10] == pytest.approx(1 - 5.0 / (10.0 + 0.25))
    assert short[50] == pytest.approx(1 - 15.0 / (30.0 + 0.25 * 9))


def test_bounds_of_the_motion_by_hand():
    """Values in the order along, across, curvature and their rates: each is compared with its own bound."""
    rest = np.zeros(1)
    kinematics = [ExecutedMotion(*(rest + v if i == k else rest for i in range(6))).kinematics()[0]
                  for k, v in ((0, 3.0), (0, -4.0), (1, -9.0), (2, -0.7))]  # fmt: skip
    np.testing.assert_allclose(kinematics, [3.0 / 6.0, 4.0 / 8.0, 9.0 / 4.5, 0.7 / 0.35])
    comfort = [ExecutedMotion(*(rest + v if i == k else rest for i in range(6))).comfort()[0]
               for k, v in ((3, -8.37), (4, 16.74), (5, 0.6))]  # fmt: skip
    np.testing.assert_allclose(comfort, [1.0, 2.0, 2.0])


def test_beside_the_route_the_lane_risk_is_the_distance_of_the_farthest_corner():
    drive = logged_drive()
    ego = drive.ego.copy()
    ego[:, :2] += 500.0 * np.array([-np.sin(ego[0, Ego.HEADING]), np.cos(ego[0, Ego.HEADING])])
    away = replace(drive, ego=ego)
    found = all_severities(away, evaluate(away))["lane"]
    assert ((found > 400.0) & (found < 520.0)).all()


def test_the_mean_of_one_sample_is_that_sample():
    one = Endpoint("x", "x", 0.2, "mean", 0.0, "", begin=0.1)
    found = future_risk(np.array([[9.0, 8.0, 7.0, 1.0]]), np.array([4]), one)[0]
    np.testing.assert_array_equal(found[:2], [7.0, 1.0])
