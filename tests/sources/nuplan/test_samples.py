"""Samples of real moments: read as logs, planned on, and refused where they are damaged."""

from __future__ import annotations

import numpy as np
import pytest

from radp.evaluation.open_loop import displacements
from radp.planners import load_planner
from radp.scenario import Ego
from radp.sources.convert import SourceError
from radp.sources.nuplan.samples import PAST, read_sample
from tests.shared_data import shared_params


def write_sample(path, **changes):
    """A straight road of two lanes, the ego at 5 m/s, a car ahead of it at the same speed, a pedestrian that leaves."""
    time = 0.1 * np.arange(-20, 81)
    ego = np.zeros((101, 7), dtype=np.float32)
    ego[:, 0], ego[:, 3] = 5.0 * time, 5.0
    others = np.zeros((20, 21, 11), dtype=np.float32)
    others[0, :, 0], others[0, :, 3], others[0, :, 6:9] = 20.0 + 5.0 * time[:21], 5.0, (4.5, 1.9, 1.0)
    others[1, 10:, 0], others[1, 10:, 1], others[1, 10:, 6:8], others[1, 10:, 9] = 8.0, 4.0, 0.6, 1.0
    future = np.zeros((20, 80, 3), dtype=np.float32)
    future[0, :, 0], future[1, :5, 0], future[1, :5, 1] = 20.0 + 5.0 * time[21:], 8.0, 4.0
    lanes = np.zeros((40, 50, 7), dtype=np.float32)
    for i, (start, y) in enumerate(((-30.0, 0.0), (30.0, 0.0), (-30.0, 3.5))):
        lanes[i, :, 0], lanes[i, :, 1], lanes[i, :, 6] = np.linspace(start, start + 60.0, 50), y, 1.0
    lanes[1, :, 5:] = 1.0, 0.0  # red
    route = np.zeros((10, 50, 3), dtype=np.float32)
    route[:2, :, :2] = lanes[[1, 0], :, :2]
    arrays = {
        "map_name": np.array("made"), "token": np.array("abc"), "ego_agent_past": ego[:21],
        "ego_agent_future": ego[21:, :3], "neighbor_agents_past": others, "neighbor_agents_future": future,
        "map_lanes": lanes, "map_crosswalks": np.zeros((5, 30, 3), dtype=np.float32), "route_lanes": route,
    }  # fmt: skip
    np.savez(path, **{name: value for name, value in (arrays | changes).items() if value is not None})
    return path


def test_a_made_sample(tmp_path):
    scenario = read_sample(write_sample(tmp_path / "a.npz"))
    scenario.validate()
    assert (scenario.token, scenario.start, len(scenario.map), len(scenario.tracks)) == ("abc", PAST - 1, 3, 2)
    np.testing.assert_allclose(scenario.ego[:, Ego.VX], 5.0, atol=1e-3)
    assert scenario.tracks.valid.sum(1).tolist() == [101, 11 + 5]
    blocks = [scenario.map.roadblocks.index[name] for name in scenario.route]
    assert [scenario.map.roadblock[scenario.map.lane_index[name]] for name in ("0", "1")] == blocks
    assert scenario.lights.lane.tolist() == [scenario.map.lane_index["1"]]
    (found,) = displacements(load_planner("constant_velocity"), [scenario])
    assert found.average(8) == pytest.approx(0.0, abs=1e-3) and found.final(8) == pytest.approx(0.0, abs=1e-3)


@pytest.mark.parametrize(
    "change, reason",
    [
        ({"token": None}, "token"),
        ({"ego_agent_past": np.zeros((20, 7))}, "ego_agent_past has shape"),
        ({"map_lanes": np.zeros((40, 50, 7))}, "no lane"),
        ({"ego_agent_future": np.full((80, 3), np.nan)}, "not finite"),
        ({"map_name": np.array([{}], dtype=object)}, "not a readable sample"),
    ],
)
def test_damaged_samples_are_refused(tmp_path, change, reason):
    with pytest.raises(SourceError, match=reason):
        read_sample(write_sample(tmp_path / "a.npz", **change))


@pytest.mark.golden
@pytest.mark.parametrize("path", shared_params("data/nuplan_snippets/samples/*.npz"))
def test_real_samples(path):
    scenario = read_sample(path)
    scenario.validate()
    assert scenario.token in path.name and len(scenario.route) >= 1
    for name in ("constant_velocity", "diffusion-planner-mini"):
        (found,) = displacements(load_planner(name), [scenario])
        assert np.isfinite(found.distance).all() and len(found.distance) == 80
