"""The runtime's numpy against the torch it stands for, and boxes worked out by hand."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from radp.model.config import MINI, NUPLAN
from radp.model.sampler import solve as torch_solve
from radp.model.schedule import denoising_times
from radp.model.seam import close_seam as torch_close_seam
from radp.model.solver_table import solver_table
from radp.model.target import TargetSpace
from radp.runtime.manifest import ExportManifest, Schedule
from radp.runtime.solver import close_seam, solve, to_metres
from radp.runtime.status import box_gaps, rule_statuses
from radp.scenario.vehicle import PACIFICA
from radp.scene.normaliser import Normaliser


def schedule_of(steps):
    table = solver_table(steps)
    return Schedule(*(np.array(table[name], np.float32) for name in ("times", "keep", "take", "more")))


@pytest.mark.parametrize("steps", [1, 4, 10, 15])
def test_the_table_of_the_solver_gives_what_the_sampler_gives(steps):
    random = torch.Generator().manual_seed(0)
    x, current = torch.randn(2, 3, 9, 4, generator=random), torch.randn(2, 3, 4, generator=random)
    times, schedule = denoising_times(steps), schedule_of(steps)
    calls = [*times[:-1].tolist(), 1e-3]
    np.testing.assert_allclose(schedule.times, calls, rtol=1e-6)
    expected = torch_solve(lambda x, i: torch.sin(2 * x) + calls[i], x, current, times)
    found = solve(lambda x, at: np.sin(2 * x) + np.float32(at), x.numpy().copy(), current.numpy(), schedule)
    np.testing.assert_allclose(found, expected.numpy(), atol=2e-5)
    assert found.dtype == np.float32


def manifest_of(config, rules=()):
    normaliser = Normaliser.published(config.neighbours)
    vehicle = {name: getattr(PACIFICA, name) for name in ("length", "width", "rear_axle_to_center")}
    values = {"model": config.to_json(), "vehicle": vehicle, "rules": list(rules)}
    moments = normaliser.state.mean.numpy(), normaliser.state.std.numpy()
    return ExportManifest(Path("."), values, {}, schedule_of(10), *moments), normaliser


@pytest.mark.parametrize("config", [NUPLAN, MINI])
def test_metres_are_those_of_the_target_space(config):
    manifest, normaliser = manifest_of(config)
    clean = torch.randn(2, config.predicted, 81, 4, generator=torch.Generator().manual_seed(0))
    expected = TargetSpace(config, normaliser).to_metres(clean)[:, :, 1:]
    np.testing.assert_allclose(to_metres(clean.numpy(), manifest), expected.numpy(), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("speed", [0.0, 3.0, 12.0])
def test_the_seam_is_closed_as_in_torch(speed):
    s = torch.cumsum(torch.full((2, 80), 0.5), 1) * torch.tensor([[1.0], [0.0]])  # one drives, one stands
    angle = 0.01 * s
    plans = torch.stack((50 * angle.sin(), 50 * (1 - angle.cos()), angle.cos(), angle.sin()), -1)
    expected = torch_close_seam(plans, torch.full((2,), speed), 0.5)
    np.testing.assert_allclose(close_seam(plans.numpy(), np.full(2, speed), 0.5), expected.numpy(), atol=2e-4)


def test_gaps_between_boxes_by_hand():
    ego, size = np.array([[0.0, 0.0, 1.0, 0.0]]), np.array([4.0, 2.0])
    others = np.array([[[10.0, 0, 1, 0]], [[0.0, 3.0, 1, 0]], [[3.0, 0, 0, 1]], [[5.0, 5.0, 0, 1]]])
    gaps = box_gaps(ego, size, others, np.array([[4.0, 2.0]] * 4))
    # ahead: 10 - 2 - 2; beside: 3 - 1 - 1; across, 3 m ahead: 3 - 2 - 1; across, off both ways: max(5-2-1, 5-1-2)
    np.testing.assert_allclose(gaps[:, 0], [6.0, 1.0, 0.0, 2.0], atol=1e-12)


def scene_of(config):
    shapes = {
        "neighbor_agents_past": (config.agents, 21, 11),
        "static_objects": (5, 10),
        "lanes": (config.lanes, 20, 12),
    }
    scene = {name: np.zeros(shape, np.float32) for name, shape in shapes.items()}
    scene["lanes_speed_limit"] = np.zeros((config.lanes, 1), np.float32)
    scene["lanes_has_speed_limit"] = np.zeros((config.lanes, 1), bool)
    return scene


def test_status_names_the_object_that_is_hit_and_the_lane_whose_limit_is_passed():
    config = replace(MINI, agents=6)
    manifest, _ = manifest_of(config, ("collision", "comfort", "speed"))
    scene, joint = scene_of(config), np.zeros((config.predicted, 80, 4), np.float32)
    joint[..., 2] = 1.0
    joint[0, :, 0] = np.arange(1, 81)  # 10 m/s along x
    joint[1:, :, 1] = 100.0
    quiet = rule_statuses(joint, scene, {"collision": 0.1, "comfort": 0.2, "speed": 0.0}, manifest)
    assert [(one.rule, one.level) for one in quiet] == [("collision", "ok"), ("comfort", "ok"), ("speed", "ok")]
    scene["neighbor_agents_past"][2, -1] = [40, 0, 1, 0, 0, 0, 2, 4, 1, 0, 0]
    joint[3, :, :2] = [40.0, 0.0]  # the third neighbour stands on the path
    scene["lanes"][1, :, 0], scene["lanes"][1, :, 2] = np.linspace(0, 80, 20), 1.0
    scene["lanes_speed_limit"][1], scene["lanes_has_speed_limit"][1] = 9.0, True
    collision, comfort, speed = rule_statuses(joint, scene, {"comfort": 0.8}, manifest)
    assert (collision.level, collision.array, collision.row) == ("error", "neighbor_agents_past", 2)
    assert collision.value < 0.0 and (comfort.level, comfort.row) == ("warn", -1)
    assert (speed.level, speed.array, speed.row) == ("warn", "lanes", 1) and speed.value == pytest.approx(1.0, abs=1e-4)


def test_the_runtime_imports_neither_torch_nor_numba_nor_pyarrow():
    script = (
        "import sys, radp.runtime; "
        "print([name for name in ('torch', 'numba', 'pyarrow', 'scipy', 'matplotlib') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
