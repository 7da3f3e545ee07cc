import math
from dataclasses import replace

import pytest
import torch

from radp.scene.scene import EgoColumn
from radp.training.augmentation import (
    JOIN,
    Draws,
    augment,
    disturb_state,
    in_ego_frame,
    own_return,
    quintic,
    return_to_log,
)
from tests.diffusion_planner_golden import PATTERN, read_golden
from tests.made_scenes import made_scene
from tests.shared_data import shared_params


@pytest.mark.golden
@pytest.mark.parametrize("path", shared_params(PATTERN))
def test_augmentation_of_the_published_program(path):
    golden = read_golden(path)
    scene = replace(golden.scene(futures=True), ego_current_state=golden["in/aug_ego_current_state"])
    augmented = augment(scene, Draws(golden["in/aug_rand_flag"], golden["in/aug_rand"]), 0.5)
    names = [name[len("out/aug_") :] for name in golden.arrays if name.startswith("out/aug_")]
    assert len(names) == 7
    for name in names:
        torch.testing.assert_close(getattr(augmented, name), golden[f"out/aug_{name}"], atol=5e-5, rtol=1e-6)


def test_slow_and_unlucky_samples_are_left_alone():
    scene = made_scene(batch=3)
    scene.ego_current_state[1, EgoColumn.VX] = 1.9
    draws = Draws(torch.tensor([0.49, 0.9, 0.9]), torch.rand(3, 9, generator=torch.Generator().manual_seed(1)))
    augmented = augment(scene, draws, 0.5)
    for name, value in scene.items():
        torch.testing.assert_close(getattr(augmented, name)[:2], value[:2])
    assert not torch.allclose(augmented.lanes[2], scene.lanes[2])


def test_speed_and_yaw_rate_stay_in_their_limits():
    ego = torch.tensor([[0.0, 0, 1, 0, 0.5, 0, 0, 0, 0.3, 2.0], [0.0, 0, 1, 0, 5.0, 0, 0, 0, 0.3, 2.0]])
    lowest = torch.full((2, 9), 0.5)
    lowest[:, 3] = 0.0  # vx - 1 m/s
    slow, fast = disturb_state(ego, lowest)
    assert slow[EgoColumn.VX] == 0 and slow[EgoColumn.STEERING] == 0 and slow[EgoColumn.YAW_RATE] == 0
    assert fast[EgoColumn.VX] == 4.0 and float(fast[EgoColumn.YAW_RATE]) == pytest.approx(0.85)
    assert float(fast[EgoColumn.STEERING]) == pytest.approx(math.atan(0.85 * 3.089 / 4.0))


def test_the_quintic_meets_all_six_boundary_values():
    generator = torch.Generator().manual_seed(0)
    p0, v0, a0, p1, v1, a1 = torch.randn(6, 3, 2, generator=generator, dtype=torch.float64)
    fine = quintic(p0, v0, a0, p1, v1, a1, steps=21)
    torch.testing.assert_close(fine[:, -1], p1)
    time = torch.linspace(0, 2.1, 22, dtype=torch.float64)
    powers = torch.linalg.lstsq(
        (time[:, None] ** torch.arange(6)).expand(3, -1, -1), torch.cat((p0[:, None], fine), 1)
    ).solution
    at_end = 2.1 ** torch.arange(6, dtype=torch.float64)
    order = torch.arange(6)
    torch.testing.assert_close(powers[:, 1], v0)
    torch.testing.assert_close(2 * powers[:, 2], a0)
    velocity = (powers[:, 1:] * (order[1:] * at_end[:5])[:, None]).sum(1)
    torch.testing.assert_close(velocity, v1)
    acceleration = (powers[:, 2:] * (order[2:] * order[1:5] * at_end[:4])[:, None]).sum(1)
    torch.testing.assert_close(acceleration, a1)


def test_the_new_future_joins_a_braking_log_smoothly():
    time = 0.1 * torch.arange(1, 81, dtype=torch.float64)
    position = 8 * time - 0.4 * time**2
    future = torch.stack((position, torch.zeros(80), torch.zeros(80)), -1)[None]
    ego = torch.zeros(1, 10, dtype=torch.float64)
    ego[0, [0, 1, 2, 4]] = torch.tensor([0.0, 0.5, 1.0, 8.0], dtype=torch.float64)
    new = return_to_log(ego, future)
    assert torch.equal(new[:, JOIN:], future[:, JOIN:])
    assert float(new[0, :, 1].diff().abs().max()) < 0.08  # 0.5 m sideways within 2 s, without a jump
    assert float(new[0, :, 0].diff().min()) > 0


@pytest.mark.parametrize("yaw_rate, braking", [(-0.5, 0.0), (0.3, 1.0), (0.0, 2.0)])
def test_the_own_way_back_follows_a_log_from_which_the_ego_was_not_moved(yaw_rate, braking):
    time = 0.01 * torch.arange(801, dtype=torch.float64)
    speed, heading = (6 - braking * time).clamp(min=0), yaw_rate * time
    walked = torch.stack((speed * heading.cos(), speed * heading.sin()), -1)
    xy = torch.cat((torch.zeros(1, 2), ((walked[1:] + walked[:-1]) / 2 * 0.01).cumsum(0)))
    future = torch.cat((xy, heading[:, None]), -1)[10::10][None]
    ego = torch.tensor([[0.0, 0, 1, 0, 6.0, 0, -braking, 0, 0, yaw_rate]], dtype=torch.float64)
    own, published = own_return(ego, ego, future), return_to_log(ego, future)
    torch.testing.assert_close(own[..., :2], future[..., :2])
    assert float((own - future)[..., 2].abs().max()) < 0.04  # between two poses, and not at the second one
    if yaw_rate:
        assert float((published - future)[..., :2].norm(dim=-1).max()) > 0.05


def test_the_own_way_back_starts_along_the_heading_turns_back_at_once_and_fades_out():
    future = torch.zeros(1, 80, 3, dtype=torch.float64)
    future[0, :, 0] = 0.5 * torch.arange(1, 81)
    before = torch.tensor([[0.0, 0, 1, 0, 5.0, 0, 0, 0, 0, 0]], dtype=torch.float64)
    ego = before.clone()
    ego[0, [1, 2, 3]] = torch.tensor([0.4, math.cos(0.1), math.sin(0.1)], dtype=torch.float64)
    new = own_return(before, ego, future)
    assert torch.equal(new[:, JOIN:], future[:, JOIN:])
    assert float(new[0, 0, 1]) == pytest.approx(0.4 + 0.05 * 5.0 * 0.2, abs=0.02)
    sideways = torch.cat((torch.tensor([0.4], dtype=torch.float64), new[0, :, 1]))
    bend = sideways.diff().diff() / 0.01
    assert float(bend[0]) == pytest.approx(-6 / 2.1**2 * 0.4 - 4 / 2.1 * 0.5, abs=0.15)
    assert float(sideways.diff()[JOIN].abs()) < 0.01 and float(new[0, :, 2].abs().max()) < 0.2


def test_the_own_way_back_keeps_the_heading_where_the_log_stands():
    future = torch.zeros(1, 80, 3, dtype=torch.float64)
    future[..., 0], future[..., 2] = 0.01, 0.3
    ego = torch.tensor([[0.0, 0, 1, 0, 2.0, 0, 0, 0, 0, 0]], dtype=torch.float64)
    new = own_return(ego, ego, future)
    torch.testing.assert_close(new, future)


def test_a_log_that_ends_stays_ended():
    scene = made_scene(batch=2)
    scene.ego_current_state[:, EgoColumn.VX] = 5.0
    scene.ego_agent_future[:, 50:] = 0.0
    augmented = augment(scene, Draws(torch.ones(2), torch.rand(2, 9)), 1.0, "own")
    assert not augmented.ego_agent_future[:, 50:].any() and augmented.ego_agent_future[:, :50].any(-1).all()


def test_frames_undo_each_other_and_padding_stays_zero():
    scene = made_scene(batch=2)
    moved = replace(scene, ego_current_state=scene.ego_current_state.clone())
    moved.ego_current_state[:, :4] = torch.tensor([3.0, -2.0, math.cos(0.4), math.sin(0.4)])
    there = in_ego_frame(moved)
    torch.testing.assert_close(there.ego_current_state[:, :4], torch.tensor([[0.0, 0, 1, 0]] * 2))
    assert (there.lanes[(scene.lanes == 0).all(-1)] == 0).all()
    assert (there.neighbor_agents_future[(scene.neighbor_agents_future == 0).all(-1)] == 0).all()
    inverse = torch.tensor([-3 * math.cos(0.4) + 2 * math.sin(0.4), 3 * math.sin(0.4) + 2 * math.cos(0.4)])
    back = replace(there, ego_current_state=there.ego_current_state.clone())
    back.ego_current_state[:, :2] = inverse
    back.ego_current_state[:, 2:4] = torch.tensor([math.cos(-0.4), math.sin(-0.4)])
    again = in_ego_frame(back)
    for name in ("lanes", "route_lanes", "neighbor_agents_past", "static_objects"):
        torch.testing.assert_close(getattr(again, name), getattr(scene, name), atol=1e-4, rtol=1e-4)


def test_the_same_generator_gives_the_same_draws():
    one, two = (Draws.make(5, torch.Generator().manual_seed(3)) for _ in range(2))
    assert torch.equal(one.noise, two.noise) and torch.equal(one.flag, two.flag)
