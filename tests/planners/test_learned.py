"""Learned planners from disk: our folders, the published layout, adapters on top, and how they drive."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import radp
from radp.cli.main import main
from radp.model.adapters import add_adapters, load_adapters, merge_plain, save_adapters, target_names
from radp.model.checkpoint import export_published, save_model
from radp.model.config import LoraSettings, ModelConfig
from radp.model.head import AttributionHead, HeadConfig, save_head
from radp.model.network import build_model
from radp.planners.diffusion import DiffusionPlanner
from radp.planners.learned import load_learned
from radp.runs.errors import BadInput
from radp.scenario import Ego
from radp.sim.reference import tracker_reference
from radp.sim.simulate import simulate
from radp.sources.synthetic import make_scenario
from tests.made_models import ONE_PASS
from tests.made_scenarios import cut_short

SMALL = replace(
    ModelConfig.preset("mini"), agents=6, lanes=8, neighbours=2, hidden=24, mixer_channels=16, preproj_hidden=32
)
RULES = ("collision", "lane", "speed", "kinematics", "comfort", "goal")


def awake(config: ModelConfig, seed: int = 0):
    """A model whose zero-initialised parts are not zero, so that everything in it matters."""
    model = build_model(config, seed)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.02 * torch.randn(p.shape, generator=generator))
    return model.eval()


def short_scenario(seed: int = 1):
    return cut_short(make_scenario(seed, agents=8), 12)


def test_a_model_folder_drives_in_closed_loop_whatever_the_batch(tmp_path):
    save_model(awake(SMALL), tmp_path / "small")
    planner = radp.load_planner(str(tmp_path / "small"))
    assert planner.name == "small"
    scenarios = [short_scenario(1), short_scenario(2)]
    together = list(simulate(planner, scenarios, agents="nonreactive", batch=2, keep_plans=True))
    alone = list(simulate(planner, scenarios, agents="nonreactive", batch=1, keep_plans=True))
    for a, b in zip(together, alone):
        assert a.failure is None and a.plans.shape == (11, 80, 4)
        # Matrix products round by batch size, processor and threads (about 1e-6 of a plan's size), and the tracker
        # turns a plan's second differences, 100 times larger, into commands: compare where the car is, to a millimetre.
        np.testing.assert_allclose(a.ego[:, : Ego.VX + 1], b.ego[:, : Ego.VX + 1], atol=1e-3)


def test_a_model_may_ask_for_a_reference_and_plans_the_same():
    plain, bent = (DiffusionPlanner(awake(replace(SMALL, reference_s=look))) for look in (None, 0.6))
    now = radp.observe([short_scenario(1), short_scenario(2)])
    without, beside = plain.plan(now), bent.plan(now)
    assert without.reference is None and torch.equal(without.trajectory, beside.trajectory)
    motion = torch.from_numpy(now.ego[:, -1, [Ego.VX, Ego.AX, Ego.STEERING]])
    torch.testing.assert_close(beside.reference, tracker_reference(beside.trajectory, motion, 0.6), rtol=0, atol=1e-4)
    assert not torch.equal(beside.reference, beside.trajectory)


def test_published_layout_goes_out_and_comes_back_exactly(tmp_path):
    config = replace(ModelConfig(), hidden=24, agents=12, lanes=8, encoder_depth=1)
    model = awake(config)
    save_model(model, tmp_path / "mine")
    assert (
        main(
            ["export", "diffusion-planner", "--planner", str(tmp_path / "mine"), "--out", str(tmp_path / "p" / "m.pth")]
        )
        == 0
    )
    back = load_learned(tmp_path / "p" / "m.pth").model
    for (name, ours), theirs in zip(model.state_dict().items(), back.state_dict().values()):
        assert torch.equal(ours, theirs), name
    rollout = next(iter(simulate(DiffusionPlanner(back, "published"), [short_scenario()], agents="reactive")))
    assert rollout.failure is None


def test_a_small_model_has_no_place_in_the_published_layout(tmp_path):
    with pytest.raises(ValueError, match="route_tokens"):
        export_published(awake(SMALL), tmp_path / "m.pth")


def test_adapters_sit_on_twelve_layers_and_merge_exactly(tmp_path):
    base = awake(SMALL)
    untouched = {name: value.clone() for name, value in base.state_dict().items()}
    wrapped = add_adapters(base, LoraSettings())
    trained = [name for name, p in wrapped.named_parameters() if p.requires_grad]
    assert len(target_names(base)) == 12 and len(trained) == 24
    with torch.no_grad():
        for name, p in wrapped.named_parameters():
            if "lora_B" in name:
                p.normal_(std=0.05)
    save_adapters(wrapped, tmp_path / "adapter")
    assert {f.name for f in (tmp_path / "adapter").iterdir()} >= {"adapter_model.safetensors", "adapter_config.json"}
    fresh = awake(SMALL)
    assert all(torch.equal(untouched[n], v) for n, v in fresh.state_dict().items())
    merged = load_adapters(fresh, tmp_path / "adapter")
    wrapped.eval()
    x, time = torch.randn(2, SMALL.predicted, 81, 4), torch.tensor([0.3, 0.8])
    scene = _scene(SMALL)
    with torch.no_grad():
        on, off = base(base.observe(scene), x, time), merged(merged.observe(scene), x, time)
    torch.testing.assert_close(on, off, **ONE_PASS)
    theirs = wrapped.merge_and_unload().state_dict()
    assert all(torch.equal(theirs[name], value) for name, value in merged.state_dict().items())
    with pytest.raises(ValueError, match="no layer 'decoder"):
        merge_plain(torch.nn.Linear(2, 2), tmp_path / "adapter", 2.0)
    settings = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    (tmp_path / "adapter" / "adapter_config.json").write_text(json.dumps(settings | {"lora_alpha": float("nan")}))
    with pytest.raises(ValueError, match="lora_alpha is nan"):
        load_adapters(awake(SMALL), tmp_path / "adapter")


def test_planner_folder_with_base_adapters_and_head(tmp_path):
    base = awake(SMALL)
    save_model(base, tmp_path / "base")
    wrapped = add_adapters(awake(SMALL))
    save_adapters(wrapped, tmp_path / "aligned")
    (tmp_path / "aligned" / "planner.json").write_text(json.dumps({"base": "../base"}))
    plain = load_learned(tmp_path / "aligned")
    head = AttributionHead(HeadConfig(SMALL.hidden, RULES, heads=6, hidden=16))
    save_head(head, tmp_path / "aligned")
    headed = load_learned(tmp_path / "aligned")
    scene = _scene(SMALL)
    without, with_head = (p.plan(scene, torch.Generator().manual_seed(3)) for p in (plain, headed))
    assert without.pressure is None and with_head.pressure.shape == (2, 6) and (with_head.pressure >= 0).all()
    assert torch.equal(without.trajectory, with_head.trajectory)


def test_the_packaged_input_for_weights_leaves_the_default_alone_and_listens():
    usual, listening = load_learned("radp-mini-next"), load_learned("radp-mini-weights")
    scene = _scene(usual.model.config)
    plans = [
        planner.plan(scene, torch.Generator().manual_seed(3), weights=weights).trajectory
        for planner, weights in (
            (usual, None),
            (listening, None),
            (listening, {"goal": 4.0}),
            (listening, {"goal": 0.25}),
        )
    ]
    assert torch.equal(plans[0], plans[1])
    length = [float(plan[..., :2].diff(dim=1).norm(dim=-1).sum()) for plan in plans]
    assert length[2] > length[0] > length[3]


def test_guidance_by_name_and_bad_folders(tmp_path):
    save_model(awake(SMALL), tmp_path / "small")
    guided = radp.load_planner(f"{tmp_path / 'small'}+guidance")
    assert guided.name.endswith("+guidance") and guided.plan(_scene(SMALL)).trajectory.shape == (2, 80, 4)
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "planner.json").write_text("{}")
    with pytest.raises(BadInput, match=r"planner\.json"):
        load_learned(tmp_path / "broken")
    with pytest.raises(BadInput, match="neither a packaged model"):
        load_learned(tmp_path / "nothing")


def _scene(config: ModelConfig):
    from radp.planners.diffusion import scene_config
    from radp.scene.builder import scenes_from_log

    return scenes_from_log(make_scenario(5, agents=8), [40, 60], scene_config(config), with_future=False)
