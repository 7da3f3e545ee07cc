"""Training the published planners: every kind learns a handful of samples, resumes, and drives from its folder."""

import json

import numpy as np
import pytest
import torch

import radp
from radp.cli.main import main
from radp.planners.zoo.augmentation import ASIDE, BACK, TURN, beside, moved, perturb_plantf, perturbed_state, touches
from radp.planners.zoo.kinds import KINDS
from radp.planners.zoo.pdm_features import ego_history
from radp.planners.zoo.view import view_of_moment
from radp.scene.log_samples import LogSamples, SampleChoice, write_log_samples
from radp.sim.replay import observe_logs
from radp.training.settings import LoopConfig
from radp.training.zoo import MINI, ZooConfig, ZooTask
from tests.made_scenarios import made_scenario, thing
from tests.planners.zoo.golden import PLANNERS, read_golden
from tests.shared_data import shared_params


@pytest.fixture(scope="module")
def samples(tmp_path_factory):
    roads = [
        made_scenario(speed=8.0, things=(thing("car", 55.0, speed=4.0),), lights=("RED", "GREEN")),
        made_scenario(speed=5.0, radius=60.0, things=(thing("cone", 90.0, 3.0, type="TRAFFIC_CONE"),)),
    ]
    return write_log_samples(tmp_path_factory.mktemp("samples") / "s", roads, SampleChoice(stride=10, other_egos=1))


def config(kind, **changes):
    loop = {"steps": 30, "batch": 4, "lr": 3e-3, "warmup": 1, "schedule": "constant", **changes}
    return ZooConfig(kind=kind, loop=LoopConfig(**loop), augment=False)


@pytest.mark.parametrize("kind", MINI)
def test_learns_four_samples(kind, samples):
    """The loss on one batch falls clearly within a few steps."""
    task = ZooTask(config(kind), samples)
    batch = task.batch(0, 0, 1)
    optimizer = torch.optim.Adam(task.model.parameters(), lr=3e-3)
    losses = []
    torch.manual_seed(0)
    for _ in range(12):
        loss, parts = task.loss(task.model, batch, torch.Generator())
        assert all(np.isfinite(value) for value in parts.values())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(float(loss))
    assert min(losses[-3:]) < 0.9 * losses[0], losses


def test_the_verb_trains_resumes_and_its_folder_drives(samples, tmp_path, capsys):
    words = ["train", "planner", "--kind", "pdm-open", "--data", str(samples.path), "--steps", "4", "--batch", "4",
             "--threads", "1", "--validation", str(samples.path), "--out", str(tmp_path / "run")]  # fmt: skip
    assert main([*words, "--stop-after", "2"]) == 0
    assert main(words) == 0
    planner = radp.load_planner(str(tmp_path / "run" / "model"))
    assert planner.kind.name == "pdm-open"
    assert torch.isfinite(planner.plan(observe_logs([made_scenario()])).trajectory).all()
    about = json.loads((tmp_path / "run" / "model" / "config.json").read_text())
    assert about["training"]["settings"]["samples"] == len(samples)


def test_samples_of_other_egos_are_seen_from_them(samples):
    """The ego of a sample is nobody else's neighbour, stands at the sample's pose, and its future begins there."""
    for i in range(len(samples)):
        moment = samples.moment(i)
        view = view_of_moment(moment)
        np.testing.assert_allclose(view.pose[:2], moment.pose[:2], atol=1e-9)
        assert not view.valid[:, moment.skip].any()
        assert np.hypot(*(view.future_ego[0, :2] - view.pose[:2])) < 3.0
        assert len(view.future_ego) == 80


def test_finished_scenes_are_refused(tmp_path, capsys):
    (tmp_path / "a.npz").write_bytes(b"")
    assert main(["train", "planner", "--kind", "plantf", "--data", str(tmp_path), "--out", str(tmp_path / "o")]) == 2
    assert "log samples" in capsys.readouterr().err


def world(golden, prefix):
    return {name: value.numpy() for name, value in golden.below(prefix).items()}


@pytest.mark.golden
@pytest.mark.parametrize("path", shared_params(f"{PLANNERS}/plantf/golden_*.npz"))
def test_plantf_perturbation_as_published(path):
    golden = read_golden(path)
    sample = world(golden, "norm_out/")
    state = perturbed_state(sample, golden.arrays["aug1/noise"])
    assert touches(sample, state) != bool(golden.arrays["aug1/applied"])
    result = moved(sample, state)
    for name, value in world(golden, "aug1/").items():
        if name in result:
            np.testing.assert_allclose(result[name], value, atol=1e-5, err_msg=name)
    crowded = {name: value.copy() for name, value in sample.items()}
    x, y, heading, width, length = golden.arrays["aug2/agent1_current"]
    crowded["agent/position"][1, 20], crowded["agent/heading"][1, 20] = (x, y), heading
    crowded["agent/shape"][1, 20] = width, length
    applied = [not touches(crowded, perturbed_state(crowded, noise)) for noise in golden.arrays["aug2/noises"]]
    assert applied == golden.arrays["aug2/applied"].tolist()


def test_perturbed_samples_keep_their_future_in_the_world(samples):
    task = ZooTask(config("plantf"), samples)
    plain = task.sample(samples, 0, None)
    changed = next(
        s for s in (perturb_plantf(plain, np.random.default_rng(seed)) for seed in range(9)) if s is not plain
    )
    assert np.abs(changed["agent/target"][0] - plain["agent/target"][0]).max() > 0.05
    for name in ("agent/velocity", "map/point_vector"):  # turned, not stretched
        np.testing.assert_allclose(np.hypot(*changed[name].T), np.hypot(*plain[name].T), atol=1e-9)
    assert KINDS["plantf"].name == "plantf" and isinstance(samples, LogSamples)


def test_an_ego_beside_its_lane_keeps_its_past_and_comes_back(samples):
    view = view_of_moment(samples.moment(0))
    other = beside(view, np.random.default_rng(0))
    moved_by = other.pose - view.pose
    assert 0.01 < np.hypot(*moved_by[:2]) <= ASIDE and 0.001 < abs(moved_by[2]) <= TURN
    ahead = np.array([np.cos(view.pose[2]), np.sin(view.pose[2])])
    assert abs(moved_by[:2] @ ahead) < 1e-9  # straight to the side
    for one, two in zip(ego_history(view).values(), ego_history(other).values()):
        np.testing.assert_allclose(one, two, atol=1e-6)  # seen from itself, it drove the same way
    back = round(BACK / 0.1)
    np.testing.assert_array_equal(other.future_ego[back - 1 :], view.future_ego[back - 1 :])
    apart = np.hypot(*(other.future_ego[:, :2] - view.future_ego[:, :2]).T)
    assert (np.diff(apart[:back]) <= 0).all() and apart[0] > 0.95 * np.hypot(*moved_by[:2])
