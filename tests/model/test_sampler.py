import math
from dataclasses import replace

import pytest
import torch

from radp.bench.plan import plan_plainly
from radp.model.network import DiffusionModel
from radp.model.sampler import guidance_direction, noise_of_seeds, sample_plans, solve
from radp.model.schedule import alpha, denoising_times, half_log_snr, sigma, time_of_half_log_snr, training_times
from radp.model.seam import close_seam
from radp.model.target import TargetSpace
from radp.planners.guidance import CollisionGuidance
from radp.scene.scene import EgoColumn
from tests.made_models import ONE_PASS, SAMPLED, SMALL, randomised
from tests.made_scenes import made_scene


@pytest.fixture(scope="module")
def model():
    return randomised(SMALL)


def test_schedule_is_variance_preserving_and_invertible():
    t = torch.linspace(1e-3, 1, 50, dtype=torch.float64)
    torch.testing.assert_close(alpha(t) ** 2 + sigma(t) ** 2, torch.ones_like(t))
    assert float(alpha(t[-1])) == pytest.approx(0.00657, abs=1e-5)
    assert float(sigma(t[0])) == pytest.approx(0.0105, abs=1e-4)
    torch.testing.assert_close(time_of_half_log_snr(half_log_snr(t)), t)


def test_training_times_are_stratified_within_a_scene():
    times = training_times(1000, 4, torch.Generator().manual_seed(0)).view(1000, 4)
    strata = ((times - 1e-3) / 0.999 * 4).floor().clamp(max=3)
    assert torch.equal(strata, torch.arange(4.0).expand(1000, 4))


def test_the_solver_is_exact_for_gaussian_data():
    """For data N(0, s^2) the optimal x_0 is known, and so is the flow: x scales with sqrt(alpha^2 s^2 + sigma^2)."""
    spread = 0.7
    times = denoising_times(200).double()
    x = torch.randn(1, 2, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))

    def denoise(state, call):
        a, s = alpha(times[call]), sigma(times[call])
        return a * spread**2 / (a**2 * spread**2 + s**2) * state

    def scale(t):
        return torch.sqrt(alpha(t) ** 2 * spread**2 + sigma(t) ** 2)

    end = solve(denoise, x, x[:, :, 0] * 0, times)[:, :, 1:]
    a = alpha(times[-1])
    expected = a * spread**2 / scale(times[-1]) ** 2 * (scale(times[-1]) / scale(times[0]) * x[:, :, 1:])
    torch.testing.assert_close(end, expected, atol=2e-4, rtol=2e-3)


def test_the_same_noise_gives_the_same_plan_whatever_the_batch(model):
    scene = made_scene(batch=4)
    noise = noise_of_seeds([1, 2, 3, 4], model)
    together = sample_plans(model, scene, noise=noise).trajectories
    again = sample_plans(model, scene, noise=noise).trajectories
    assert torch.equal(together, again)
    alone = sample_plans(model, scene[2], noise=noise_of_seeds([3], model)).trajectories
    torch.testing.assert_close(alone, together[2:3], **SAMPLED)


def test_generators_and_several_samples(model):
    scene = made_scene(batch=2)
    one, two = (
        sample_plans(model, scene, samples=3, generator=torch.Generator().manual_seed(5)).trajectories for _ in "ab"
    )
    assert one.shape == (2, 3, 11, 80, 4) and torch.equal(one, two)
    assert not torch.allclose(one[:, 0], one[:, 1])
    noise = noise_of_seeds([8, 9], model, samples=3)
    many = sample_plans(model, scene, noise=noise)
    for k in range(3):
        single = sample_plans(model, scene, noise=noise[:, k : k + 1])
        torch.testing.assert_close(many.trajectories[:, k : k + 1], single.trajectories, **SAMPLED)
        torch.testing.assert_close(many.tokens[:, k : k + 1], single.tokens, **SAMPLED)


def test_the_quick_path_gives_what_the_plain_one_gives(model):
    scene, noise = made_scene(batch=3), noise_of_seeds([1, 2, 3], model)
    quick = sample_plans(model, scene, noise=noise).trajectories
    torch.testing.assert_close(quick, plan_plainly(model, scene, noise), **SAMPLED)


def test_encoder_runs_once_and_the_decoder_once_a_call(model):
    counts = {"encoder": 0, "route": 0, "decoder": 0}

    def counting(name):
        def hook(*_):
            counts[name] += 1

        return hook

    parts = {"encoder": model.encoder, "route": model.decoder.route_encoder, "decoder": model.decoder}
    hooks = [part.register_forward_hook(counting(name)) for name, part in parts.items()]
    sample = sample_plans(model, made_scene(batch=2), steps=10, trace=True)
    for hook in hooks:
        hook.remove()
    assert counts == {"encoder": 1, "route": 1, "decoder": 11}
    assert sample.trace.states.shape[0] == 11
    assert sample.encoding.tokens.shape == (2, 107, 32) and sample.encoding.padded.shape == (2, 107)
    assert sample.tokens.shape == (2, 1, 11, 32)


def test_the_current_state_is_pinned_in_every_call_and_the_rest_begins_as_half_of_the_noise(model):
    scene, noise = made_scene(batch=2), noise_of_seeds([1, 2], model)
    states = sample_plans(model, scene, noise=noise, trace=True).trace.states
    assert torch.equal(states[0, :, :, 1:], 0.5 * noise[:, 0])
    now = model.observe(scene)
    expected = torch.cat((now.ego_current_state[:, None, :4], now.neighbor_agents_past[:, :10, -1, :4]), 1)
    assert torch.equal(states[:, :, :, 0], expected.expand(11, -1, -1, -1))


@pytest.mark.parametrize("steps", [1, 2, 5, 20])
def test_any_number_of_steps(model, steps):
    sample = sample_plans(model, made_scene(batch=1), steps=steps, temperature=1.0, trace=True)
    assert torch.isfinite(sample.trajectories).all() and len(sample.trace.times) == steps + 1
    assert float(sample.trace.times[-1]) == pytest.approx(1e-3)


def test_score_models_sample_too():
    model = randomised(type(SMALL)(**(SMALL.to_json() | {"output": "score"})))
    assert torch.isfinite(sample_plans(model, made_scene(batch=1)).trajectories).all()


def test_guided_plans_do_not_depend_on_the_batch(model):
    scene = made_scene(batch=3)
    scene.neighbor_agents_past[:, 0, -1, :4] = torch.tensor([6.0, 1.0, 1.0, 0.0])
    noise = noise_of_seeds([4, 5, 6], model, samples=2)
    guidance = CollisionGuidance.of_scene(scene)
    together = sample_plans(model, scene, noise=noise, guidance=guidance).trajectories
    for i in range(3):
        alone = sample_plans(model, scene[i], noise=noise[i : i + 1], guidance=CollisionGuidance.of_scene(scene[i]))
        torch.testing.assert_close(alone.trajectories, together[i : i + 1], **SAMPLED)
    plain = sample_plans(model, scene, noise=noise).trajectories
    assert not torch.allclose(plain, together, atol=1e-3)
    assert math.isfinite(float(guidance.energy(torch.zeros(3, 11, 81, 4))[0]))


def test_planning_works_in_inference_mode(model):
    scene = made_scene(batch=1)
    with torch.inference_mode():
        sample = sample_plans(model, scene, guidance=CollisionGuidance.of_scene(scene))
    assert torch.isfinite(sample.trajectories).all()


def solved_by_hand(answers: list[float], times: torch.Tensor, start: float, orders: list[int]) -> float:
    """The state that the last call sees, if call i answers answers[i]: DPM-Solver++ of the given order in each step."""
    lam, a, s = (values.tolist() for values in (half_log_snr(times), alpha(times), sigma(times)))
    x = start
    for i, order in enumerate(orders):
        h, clean = lam[i + 1] - lam[i], answers[i]
        if order == 2:
            ratio = (lam[i] - lam[i - 1]) / h
            clean = (1 + 1 / (2 * ratio)) * answers[i] - answers[i - 1] / (2 * ratio)
        x = s[i + 1] / s[i] * x - a[i + 1] * (math.exp(-h) - 1) * clean
    return x


@pytest.mark.parametrize("steps", [2, 5, 9, 10, 12])
def test_the_first_step_is_first_order_and_the_last_one_too_where_steps_are_few(steps):
    times = denoising_times(steps).double()
    answers = [math.sin(3.0 * i) for i in range(steps + 1)]
    seen = []

    def denoise(x, call):
        seen.append(x[0, 0, 1, 0].item())
        return torch.full_like(x, answers[call])

    x = torch.full((1, 1, 2, 4), 0.8, dtype=torch.float64)
    end = solve(denoise, x, x[:, :, 0], times)
    orders = [1] + [2] * (steps - 1)
    if steps < 10:
        orders[-1] = 1
    assert seen[-1] == pytest.approx(solved_by_hand(answers, times, 0.8, orders), abs=1e-9)
    assert end[0, 0, 1, 0].item() == answers[-1] and torch.equal(end[:, :, 0], x[:, :, 0])


def test_guidance_adds_half_of_sigma_squared_over_alpha_between_two_times(model):
    space = TargetSpace(model.config, model.normaliser)
    clean = torch.randn(1, 11, 81, 4, generator=torch.Generator().manual_seed(0))
    direction = guidance_direction(lambda metres, time: metres, space)
    for time in (0.004, 0.005, 0.1, 0.5):  # only strictly between 0.005 and 0.1
        assert not direction(clean, time).any()
    for time in (0.006, 0.05, 0.099):
        a, s = (float(f(torch.tensor(time))) for f in (alpha, sigma))
        wanted = 0.5 * s**2 / a * space.gradient_from_metres(space.to_metres(clean))
        torch.testing.assert_close(direction(clean, time), wanted, **ONE_PASS)


def test_the_seam_of_the_ego_is_closed_and_the_others_stay(model):
    scene, noise = made_scene(batch=3), noise_of_seeds([1, 2, 3], model)
    scene.ego_current_state[:, EgoColumn.VX] = torch.tensor([5.0, 0.05, -1.0])  # backwards counts as standing
    plain = sample_plans(model, scene, noise=noise).trajectories
    seamless = DiffusionModel(replace(model.config, seam_s=0.6), model.normaliser).eval()
    seamless.load_state_dict(model.state_dict())
    found = sample_plans(seamless, scene, noise=noise).trajectories
    speed = torch.tensor([5.0, 0.05, 0.0])
    torch.testing.assert_close(found[:, 0, 0], close_seam(plain[:, 0, 0], speed, 0.6), **SAMPLED)
    torch.testing.assert_close(found[:, :, 1:], plain[:, :, 1:], **SAMPLED)
    assert not torch.allclose(found[:, 0, 0], plain[:, 0, 0], atol=1e-2)
