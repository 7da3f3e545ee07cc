"""The switches that `nuplan` leaves off, one by one, and the loss they change."""

from dataclasses import replace

import pytest
import torch

from radp.model.chain import Known
from radp.model.config import MINI
from radp.model.encoder import AssumedLimits
from radp.model.loss import diffusion_loss, make_target
from radp.model.network import extended
from radp.model.sampler import noise_of_seeds, sample_plans
from radp.model.schedule import training_times
from radp.model.target import TargetSpace
from radp.planners.diffusion import DiffusionPlanner
from radp.planners.guidance import CollisionGuidance
from radp.scene.normaliser import Normaliser, ObservationNormaliser
from radp.scene.scene import EgoColumn
from tests.made_models import ONE_PASS, SMALL, randomised
from tests.made_scenes import made_scene

VELOCITY = replace(SMALL, target_space="velocity", waypoint_loss_weight=1.0)


def space(config):
    return TargetSpace(config, Normaliser.published(config.neighbours))


@pytest.mark.parametrize("config", [SMALL, VELOCITY])
def test_target_space_and_metres_undo_each_other(config):
    metres = torch.randn(2, 11, 81, 4, dtype=torch.float64).cumsum(2)
    back = space(config).to_metres(space(config).from_metres(metres))
    torch.testing.assert_close(back, metres)


def test_velocities_sum_to_waypoints():
    x = torch.zeros(1, 11, 81, 4)
    x[:, 0, 0] = torch.tensor([-0.5, 0.0, 1.0, 0.0])  # the ego at the origin, normalised
    x[:, 0, 1:, 0] = 0.8  # 8 m/s
    metres = space(VELOCITY).to_metres(x)
    torch.testing.assert_close(metres[0, 0, :, 0], 0.8 * torch.arange(81.0))
    assert not metres[0, 0, :, 1].any()


@pytest.mark.parametrize("config", [SMALL, VELOCITY])
def test_the_chain_rule_of_the_target_space(config):
    x = torch.randn(2, 11, 81, 4, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(2, 11, 81, 4, dtype=torch.float64)
    (expected,) = torch.autograd.grad((space(config).to_metres(x) * weight).sum(), x)
    torch.testing.assert_close(space(config).gradient_from_metres(weight), expected)


def test_a_perfect_velocity_answer_costs_nothing(monkeypatch):
    model = randomised(VELOCITY)
    scene = made_scene(batch=3)
    target = make_target(model, scene, model.observe(scene))
    monkeypatch.setattr(model, "forward", lambda observed, x, time: target.clean)
    loss = diffusion_loss(model, scene)
    assert float(loss.ego) == pytest.approx(0, abs=1e-8)
    wrong = target.clean.clone()
    wrong[:, 0, 1, 0] += 0.1  # 0.1 m in the first step moves all 80 waypoints
    monkeypatch.setattr(model, "forward", lambda observed, x, time: wrong)
    expected = 0.1**2 / 80 + (0.1 / 20) ** 2
    assert float(diffusion_loss(model, scene).ego) == pytest.approx(expected, rel=1e-4)


def test_velocity_steps_count_only_where_both_ends_are_known():
    model = randomised(VELOCITY)
    scene = made_scene(batch=2)
    scene.neighbor_agents_past[:, 0] = 1.0
    scene.neighbor_agents_future[:, 0] = torch.arange(1.0, 81.0)[:, None] * 0.01
    scene.neighbor_agents_future[:, 0, 30] = 0.0
    target = make_target(model, scene, model.observe(scene))
    assert (~target.counted[:, 1]).nonzero()[:, 1].tolist() == [30, 31] * 2
    assert (~target.waypoints_counted[:, 1]).nonzero()[:, 1].tolist() == [30] * 2
    assert target.counted[:, 0].all() and not target.clean[:, 1, 31:33].any()


@pytest.mark.parametrize("config", [SMALL, VELOCITY])
def test_an_ego_whose_log_ends_goes_on_as_before_and_the_rest_costs_nothing(config, monkeypatch):
    model, scene = randomised(config), made_scene(batch=2)
    scene.ego_agent_future[:] = torch.arange(1.0, 81.0)[:, None] * torch.tensor([0.5, 0.1, 0.0])
    scene.ego_agent_future[1] = 0.0  # stands all the time
    whole = make_target(model, scene, model.observe(scene))
    scene.ego_agent_future[0, 45:] = 0.0
    cut = make_target(model, scene, model.observe(scene))
    torch.testing.assert_close(cut.metres[:, 0], whole.metres[:, 0])
    torch.testing.assert_close(cut.clean[:, 0], whole.clean[:, 0])
    assert cut.counted[0, 0].nonzero().max() == 44 and cut.waypoints_counted[0, 0].sum() == 45
    assert cut.counted[1, 0].all() and whole.counted[:, 0].all()
    wrong = cut.clean.clone()
    wrong[0, 0, 46:] += 3.0
    monkeypatch.setattr(model, "forward", lambda observed, x, time: wrong)
    assert float(diffusion_loss(model, scene).ego) == pytest.approx(0, abs=1e-8)


@pytest.mark.parametrize("config", [SMALL, VELOCITY, replace(VELOCITY, near_horizon_s=0.5, mask_padded_tokens=True)])
def test_several_draws_cost_the_mean_of_single_draws(config):
    model = randomised(config)
    scene = made_scene(batch=3)
    generator = torch.Generator().manual_seed(0)
    time, noise = training_times(3, 4, generator), torch.randn(12, 11, 80, 4, generator=generator)
    with torch.no_grad():
        together = diffusion_loss(model, scene, time=time, noise=noise)
        single = [diffusion_loss(model, scene, time=time[k::4], noise=noise[k::4]) for k in range(4)]
    assert together.estimate.shape[0] == 12
    for name in ("neighbour", "ego"):
        mean = torch.stack([getattr(loss, name) for loss in single]).mean()
        torch.testing.assert_close(getattr(together, name), mean, **ONE_PASS)


def test_several_draws_encode_the_scene_once():
    model = randomised(replace(SMALL, noise_draws=4))
    seen = []
    model.encoder.register_forward_hook(lambda _, inputs, __: seen.append(inputs[0].batch_size))
    diffusion_loss(model, made_scene(batch=2), generator=torch.Generator().manual_seed(0))
    assert seen == [2]


def test_the_near_horizon_weighs_more_and_one_on_average():
    scene = made_scene(batch=2)
    plain, near = randomised(SMALL), randomised(replace(SMALL, near_horizon_s=0.5))
    clean = make_target(plain, scene, plain.observe(scene)).clean
    losses = {}
    for step in (1, 80):
        wrong = clean.clone()
        wrong[:, 0, step, 0] += 1.0
        for name, model in (("plain", plain), ("near", near)):
            model.forward = lambda observed, x, time, wrong=wrong: wrong
            losses[name, step] = float(diffusion_loss(model, scene).ego)
    assert losses["plain", 1] == pytest.approx(losses["plain", 80]) == pytest.approx(1 / 80)
    assert losses["near", 1] / losses["near", 80] == pytest.approx(8.5 / 0.6, rel=1e-4)
    everywhere = clean + 1.0 * torch.tensor([1.0, 0, 0, 0])
    near.forward = lambda observed, x, time: everywhere
    assert float(diffusion_loss(near, scene).ego) == pytest.approx(1.0, rel=1e-4)


def predictions(model, scene):
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(len(scene), model.config.predicted, 81, 4, generator=generator)
    with torch.no_grad():
        return model(model.observe(scene), x, torch.full((len(scene),), 0.5))


def test_masked_padding_is_not_seen():
    """More padded lanes change the published answer (they are attended to), but not the masked one."""
    scene = made_scene(batch=2)
    shorter = replace(
        scene,
        lanes=scene.lanes.clone(),
        lanes_has_speed_limit=scene.lanes_has_speed_limit.clone(),
    )
    shorter.lanes[:, 60:] = 0
    few = shorter.crop(32, 5, 60, 25)
    for mask, equal in ((True, True), (False, False)):
        model = randomised(replace(SMALL, mask_padded_tokens=mask))
        assert torch.allclose(predictions(model, shorter), predictions(model, few), **ONE_PASS) is equal


def test_route_tokens_see_the_order_of_the_route():
    scene = made_scene(batch=1)
    scene.route_lanes[:] = torch.randn(scene.route_lanes.shape, generator=torch.Generator().manual_seed(1))
    model = randomised(replace(SMALL, route_tokens=True))
    with torch.no_grad():
        tokens = model.encoder(model.observe(scene))
        assert tokens.tokens.shape[1] == 32 + 5 + 70 + 25
        swapped = replace(scene, route_lanes=scene.route_lanes.flip(1))
        other = model.encoder(model.observe(swapped)).tokens
    assert not torch.allclose(tokens.tokens[:, 107:].flip(1), other[:, 107:], atol=1e-4)


@pytest.mark.parametrize("speed_given", [False, True])
def test_the_model_sees_the_speed_of_the_ego_only_if_that_is_wanted(speed_given):
    model = randomised(replace(SMALL, ego_speed=speed_given))
    scene = made_scene(batch=2)
    faster = replace(scene, ego_current_state=scene.ego_current_state.clone())
    faster.ego_current_state[:, EgoColumn.VX] += 5.0
    assert torch.equal(predictions(model, scene), predictions(model, faster)) is not speed_given


def test_residual_cross_attention_keeps_the_agents_apart():
    scene = made_scene(batch=1)
    plain, residual = (randomised(replace(SMALL, residual_cross_attention=flag)) for flag in (False, True))
    assert not torch.allclose(predictions(plain, scene), predictions(residual, scene))


def test_flat_polylines_have_no_mixer():
    model = randomised(replace(SMALL, polyline_encoder="flat"))
    assert not any("encoder.lane_encoder.polyline.blocks" in name for name, _ in model.named_parameters())
    assert torch.isfinite(predictions(model, made_scene(batch=2))).all()


def test_mini_trains_and_plans_on_scenes_of_the_published_size():
    model = randomised(MINI).train()
    scene = made_scene(batch=2)
    loss = diffusion_loss(model, scene, generator=torch.Generator().manual_seed(0))
    assert loss.estimate.shape == (2 * MINI.noise_draws, MINI.predicted, 81, 4)
    loss.total().backward()
    assert all(parameter.grad is not None for parameter in model.parameters())
    guidance = CollisionGuidance.of_scene(scene, MINI.neighbours)
    sample = sample_plans(model.eval(), scene, samples=2, guidance=guidance)
    assert sample.trajectories.shape == (2, 2, MINI.predicted, 80, 4) and torch.isfinite(sample.trajectories).all()


def test_a_few_steps_of_training_lower_the_loss():
    model = randomised(VELOCITY).train()
    scene = made_scene(batch=4)
    optimiser = torch.optim.AdamW(model.parameters(), lr=2e-3)
    generator = torch.Generator().manual_seed(0)
    losses = []
    for _ in range(30):
        optimiser.zero_grad()
        loss = diffusion_loss(model, scene, generator=generator).ego
        loss.backward()
        optimiser.step()
        losses.append(loss.item())
    assert sum(losses[-5:]) < 0.5 * sum(losses[:5])


def test_withheld_speed_says_nothing_and_is_never_withheld_when_driving():
    config = replace(SMALL, ego_speed=True, speed_dropout=0.999, encoder_dropout=0.0)
    model = randomised(config)
    slow, fast = made_scene(batch=2), made_scene(batch=2)
    fast.ego_current_state[:, EgoColumn.VX] += 5.0
    torch.manual_seed(0)  # draws that withhold both
    model.train()
    contexts = [model.context(model.observe(scene))[0].route for scene in (slow, fast)]
    torch.testing.assert_close(contexts[0], contexts[1], **ONE_PASS)
    model.eval()
    contexts = [model.context(model.observe(scene))[0].route for scene in (slow, fast)]
    assert (contexts[0] - contexts[1]).abs().max() > 1e-4


def test_a_model_that_is_given_speed_begins_as_the_one_without():
    model = randomised(SMALL)
    wider = extended(model, replace(SMALL, ego_speed=True, speed_dropout=0.5))
    scene = made_scene(batch=2)
    torch.testing.assert_close(predictions(wider, scene), predictions(model, scene), **ONE_PASS)
    with pytest.raises(ValueError, match="do not fit"):
        extended(model, replace(SMALL, hidden=2 * SMALL.hidden))


def test_bad_shares_of_withheld_speed_are_refused():
    with pytest.raises(ValueError, match="speed_dropout needs ego_speed"):
        replace(SMALL, speed_dropout=0.5)
    with pytest.raises(ValueError, match="expected 0 to 1"):
        replace(SMALL, ego_speed=True, speed_dropout=1.0)
    with pytest.raises(ValueError, match="seam_s is 0"):
        replace(SMALL, seam_s=0.0)
    with pytest.raises(ValueError, match="reference_s is 0"):
        replace(SMALL, reference_s=0.0)
    with pytest.raises(ValueError, match="sampler_steps must be positive"):
        replace(SMALL, sampler_steps=0)


def test_a_model_says_in_how_many_steps_it_plans():
    """In closed loop, in the chain that alignment learns on, and wherever nobody asks for another number."""
    model, scene = randomised(replace(SMALL, sampler_steps=3)), made_scene(batch=2)
    noise = noise_of_seeds([1, 2], model)
    three, ten = (sample_plans(model, scene, steps=steps, noise=noise).trajectories for steps in (3, 10))
    assert torch.equal(sample_plans(model, scene, noise=noise).trajectories, three) and not torch.equal(three, ten)
    planner = DiffusionPlanner(model)
    assert planner.steps == 3 and DiffusionPlanner(model, steps=5).steps == 5
    assert torch.equal(planner.draw(scene, noise).trajectories, three)
    observed = model.observe(scene)
    trace: list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]] = []
    Known.of(model, observed, model.encoder(observed)).draw(noise, trace=trace)
    assert len(trace) == 4  # three steps and the last call


def test_lanes_without_a_limit_are_taken_to_have_the_assumed_one():
    """The first scene's ego is slower than that, the second's faster: there its own speed counts."""
    model = randomised(replace(SMALL, route_tokens=True))
    assuming = extended(model, replace(model.config, assumed_limit=13.9))
    scene = made_scene(batch=2)
    ego = scene.ego_current_state.clone()
    ego[:, EgoColumn.VX : EgoColumn.AX] = torch.tensor([[3.0, 4.0], [12.0, 16.0]])
    scene, lanes = replace(scene, ego_current_state=ego), ("lanes", "route_lanes")
    known = {f"{name}_has_speed_limit": torch.ones_like(getattr(scene, f"{name}_has_speed_limit")) for name in lanes}
    given = replace(scene, **known)
    torch.testing.assert_close(predictions(assuming, given), predictions(model, given), rtol=0, atol=0)
    hidden = replace(scene, **{name: torch.zeros_like(value) for name, value in known.items()})
    wanted = torch.tensor([13.9, 20.0]).view(2, 1, 1)
    limits = {f"{name}_speed_limit": wanted.expand_as(getattr(scene, f"{name}_speed_limit")) for name in lanes}
    torch.testing.assert_close(predictions(assuming, hidden), predictions(model, replace(given, **limits)), **ONE_PASS)
    assert (predictions(model, hidden) - predictions(assuming, hidden)).abs().max() > 1e-4
    plain = Normaliser(model.normaliser.state, ObservationNormaliser({}))  # nothing is normalised
    seen = AssumedLimits(13.9, plain.observation)(hidden)
    torch.testing.assert_close(seen.lanes_speed_limit, limits["lanes_speed_limit"])
    with pytest.raises(ValueError, match="assumed_limit is 0"):
        replace(SMALL, assumed_limit=0.0)
