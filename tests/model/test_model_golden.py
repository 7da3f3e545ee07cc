"""Every number of the published planner's golden files, with the tolerances measured for them."""

import json

import pytest
import torch

from radp.model.checkpoint import load_model, published_name
from radp.model.encoder import token_positions
from radp.model.loss import add_noise, diffusion_loss, make_target
from radp.model.sampler import guidance_direction, sample_plans, solve
from radp.model.schedule import denoising_times
from radp.model.target import TargetSpace
from radp.planners.guidance import CollisionGuidance
from radp.scene.normaliser import Normaliser
from tests.diffusion_planner_golden import PATTERN, read_golden
from tests.shared_data import shared_params

pytestmark = pytest.mark.golden


def close(actual, expected, atol, rtol=0.0):
    torch.testing.assert_close(actual, expected, atol=atol, rtol=rtol)


@pytest.fixture(params=shared_params(PATTERN), scope="module")
def golden(request):
    return read_golden(request.param)


@pytest.fixture(scope="module")
def model(golden):
    return golden.model()


def test_observation_normaliser(golden, model):
    for name, value in model.observe(golden.scene()).items():
        close(value, golden[f"in/norm/{name}"], 1e-6)


def test_encoder_and_its_intermediates(golden, model):
    seen = {}
    hooks = [
        block.register_forward_hook(lambda _, __, out, i=i: seen.update({f"fusion_block{i}": out}))
        for i, block in enumerate(model.encoder.fusion.blocks)
    ]
    scene = golden.scene("in/norm/")
    with torch.no_grad():
        encoding = model.encoder(scene)
        encoder = model.encoder
        for kind, (feat, valid), pos in zip(
            ("neighbor", "static", "lane"),
            (
                encoder.neighbor_encoder(scene.neighbor_agents_past),
                encoder.static_encoder(scene.static_objects),
                encoder.lane_encoder(scene.lanes, scene.lanes_speed_limit, scene.lanes_has_speed_limit),
            ),
            token_positions(scene),
        ):
            close(feat, golden[f"out/inter/{kind}_feat"], 1e-4)
            assert torch.equal(~valid, golden[f"out/inter/{kind}_mask"])
            close(pos, golden[f"out/inter/{kind}_pos"], 1e-6)
    for hook in hooks:
        hook.remove()
    for name, value in seen.items():
        close(value, golden[f"out/inter/{name}"], 1e-4)
    close(encoding.tokens, golden["out/encoding"], 1e-4)
    masks = [golden[f"out/inter/{kind}_mask"] for kind in ("neighbor", "static", "lane")]
    assert torch.equal(encoding.padded, torch.cat(masks, 1))


def test_decoder_and_its_intermediates(golden, model):
    seen = {}
    parts = {
        "route": model.decoder.route_encoder,
        "temb": model.decoder.time_embedding,
        "preproj": model.decoder.preproj,
    }
    parts |= {f"dit_block{i}": block for i, block in enumerate(model.decoder.blocks)}
    hooks = [
        part.register_forward_hook(lambda _, __, out, name=name: seen.update({name: out}))
        for name, part in parts.items()
    ]
    with torch.no_grad():
        x_start = model(golden.scene("in/norm/"), golden["in/sampled_trajectories"], golden["in/diffusion_time"])
    for hook in hooks:
        hook.remove()
    assert set(seen) == set(parts)
    for name, value in seen.items():
        close(value, golden[f"out/inter/{name}"], 1e-4)
    close(x_start, golden["out/x_start"], 1e-4)


def test_noised_targets(golden, model):
    scene = golden.scene(futures=True)
    target = make_target(model, scene, model.observe(scene))
    noised = add_noise(target.clean, golden["in/diffusion_time"], golden["in/loss_z"])
    close(noised, golden["in/sampled_trajectories"], 1e-5)


def test_losses_and_gradient_norms(golden):
    model = golden.model()
    loss = diffusion_loss(
        model, golden.scene(futures=True), time=golden["in/diffusion_time"], noise=golden["in/loss_z"]
    )
    close(loss.neighbour.detach(), golden["out/loss_neighbor"], 1e-5, 1e-5)
    close(loss.ego.detach(), golden["out/loss_ego"], 1e-5, 1e-5)
    loss.total().backward()
    squares: dict[str, float] = {}
    for name, parameter in model.named_parameters():
        theirs, _ = published_name(name)
        squares[theirs] = squares.get(theirs, 0.0) + float(parameter.grad.double().square().sum())
    expected = dict(zip(golden.arrays["out/grad_norm_names"].tolist(), golden.arrays["out/grad_norms"].tolist()))
    assert set(squares) == set(expected)
    for name, norm in expected.items():
        assert squares[name] ** 0.5 == pytest.approx(norm, rel=1e-4, abs=1e-5), name


def test_score_mode(golden):
    model = golden.model(output="score")
    with torch.no_grad():
        loss = diffusion_loss(
            model, golden.scene(futures=True), time=golden["in/diffusion_time"], noise=golden["in/loss_z"]
        )
        output = model(golden.scene("in/norm/"), golden["in/sampled_trajectories"], golden["in/diffusion_time"])
    close(output, golden["out/score_mode_output"], 2e-3)
    close(loss.neighbour, golden["out/score_mode_loss_neighbor"], 1e-5, 1e-4)
    close(loss.ego, golden["out/score_mode_loss_ego"], 1e-5, 1e-4)


def test_sampler_times_states_and_prediction(golden, model):
    sample = sample_plans(model, golden.scene(), noise=golden["in/sampler_noise"].unsqueeze(1), trace=True)
    close(sample.trace.times, golden["out/sampler_t"], 1e-6)
    close(sample.trace.states, golden["out/sampler_x_in"], 1e-4)
    close(sample.trace.estimates, golden["out/sampler_x0"], 1e-4)
    close(sample.trajectories[:, 0], golden["out/prediction"], 1e-3)


def test_toy_solver_with_and_without_guidance(golden):
    base, start = golden["in/toy_base"], golden["in/toy_xT"]
    normaliser = Normaliser.published()
    scene = normaliser.observation.denormalise(golden.scene("in/norm/")[:1])
    guidance = CollisionGuidance(CollisionGuidance.of_scene(scene).sizes, golden["in/guid_neighbor_current_mask"])
    guide = guidance_direction(guidance, TargetSpace(golden.model().config, normaliser))

    def denoise(x, _):
        return base + 0.1 * x

    plain = solve(denoise, start, base[:, :, 0], denoising_times(10))
    close(plain, golden["out/toy_x0_unguided"], 1e-5)
    guided = solve(denoise, start, base[:, :, 0], denoising_times(10), guide)
    close(guided, golden["out/toy_x0_guided"], 1e-5)
    assert (guided - plain).abs().max() > 1e-4  # else the comparison would prove nothing


def test_collision_energy_and_gradient(golden):
    sizes = CollisionGuidance.of_scene(golden.scene()[:1]).sizes
    guidance = CollisionGuidance(sizes, golden["in/guid_neighbor_current_mask"])
    close(guidance.energy(golden["in/guid_x"]), golden["out/guid_energy"], 1e-4, 1e-5)
    close(guidance(golden["in/guid_x"], float(golden["in/guid_t"])), golden["out/guid_grad"], 1e-4)


def test_guided_prediction(golden, model):
    scene = golden.scene()[:1]
    noise = golden["in/sampler_noise"][:1].unsqueeze(1)
    sample = sample_plans(model, scene, noise=noise, guidance=CollisionGuidance.of_scene(scene))
    close(sample.trajectories[:, 0], golden["out/guided_prediction_b0"], 1e-3)


def test_a_pth_of_the_golden_weights_loads_and_plans(golden, tmp_path):
    state = {f"module.{name}": value for name, value in golden.published_state().items()}
    torch.save({"epoch": 3, "ema_state_dict": state, "model": {}, "loss": 0.5}, tmp_path / "model.pth")
    (tmp_path / "args.json").write_text(json.dumps(Normaliser.published().to_args() | {"hidden_dim": 192}))
    model = load_model(tmp_path / "model.pth")
    sample = sample_plans(model, golden.scene(), noise=golden["in/sampler_noise"].unsqueeze(1))
    close(sample.trajectories[:, 0], golden["out/prediction"], 1e-3)
