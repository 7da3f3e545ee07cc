"""Encounters that did not happen: states in which one of the others is moved so that the way driven would meet it.

Contact is rare, and a model that learns a few thousand states of it by heart avoids nobody whom it has not seen. What
the rules ask for needs no log, only a scene: others going straight on, a state can be changed and judged again. So
somebody of the scene stands or drives elsewhere along its own way, or at another speed, with the past that fits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from radp.geometry.boxes import separation_of
from radp.geometry.frames import pose_frame, shift_forward
from radp.rules.body import EGO_LENGTH, EGO_WIDTH, REAR_TO_CENTER
from radp.rules.contact import MARGIN, stopping_time
from radp.scenario import DT
from radp.scene.samples import Samples
from radp.scene.scene import (
    AGENT_VELOCITY,
    COS_SIN,
    OBJECT_SIZE,
    OBJECT_VELOCITY,
    POSE,
    XY,
    AgentColumn,
    EgoColumn,
    RuleView,
    Scene,
    present,
)

TRIES = 128  # moves of somebody, of which the first that makes an encounter is taken
REACH = 50.0  # m: who is farther away stays
SHIFT = 30.0  # m along the own heading, to either side
FASTEST = 1.5  # times the own speed
APART = 0.5  # m that are kept to the ego and to everybody else now
SOONEST = 0.5  # s: what is met earlier cannot be avoided
SEED = 23


@dataclass(frozen=True)
class Moved:
    """One move for each of B scenes: which road user of the rules' view (B,), and its x, y, vx, vy now (B, 4)."""

    row: Tensor
    state: Tensor


class Encounters:
    """Samples with somebody moved: `variants` of each sample, sample i in the places i, i + N, i + 2 N, ..."""

    def __init__(self, samples: Samples, variants: int, seed: int = 0) -> None:
        self.samples, self.variants, self.seed = samples, variants, seed

    def __len__(self) -> int:
        return len(self.samples) * self.variants

    def read(self, indices: Sequence[int] | np.ndarray) -> Scene:
        """A place is always the same scene. Where no move makes an encounter, somebody is moved all the same."""
        rows = np.asarray(indices, dtype=np.int64)
        scene = self.samples.read(rows % len(self.samples))
        draws = [np.random.default_rng([self.seed, SEED, int(row)]).random((TRIES, 4)) for row in rows]
        return with_moved(scene, chosen_move(scene, torch.from_numpy(np.stack(draws))))


def chosen_move(scene: Scene, draws: Tensor) -> Moved:
    """Random numbers (B, K, 4) -> the first of K moves that makes an encounter; else the first that is possible; else
    none, which is the state as it is."""
    view = RuleView.of(scene)
    users = view.objects[:, : view.road_users]
    moves = [_tried(users, draws[:, k].to(users)) for k in range(draws.shape[1])]
    rows, states = torch.stack([m.row for m in moves], 1), torch.stack([m.state for m in moves], 1)
    possible = torch.stack([_is_possible(view, m) for m in moves], 1)
    meets = torch.stack([_is_met(scene, view, m) for m in moves], 1)
    rank = 2 * (possible & meets).long() + possible.long()  # the first of the best: argmax takes the first
    best = rank.argmax(1)
    everyone = torch.arange(len(best))
    row, state = rows[everyone, best], states[everyone, best]
    stays = ~possible.any(1)
    now = _state(users)[everyone, row]
    return Moved(row, torch.where(stays[:, None], now, state))


def with_moved(scene: Scene, moved: Moved) -> Scene:
    """The scene with that road user elsewhere, where the model and where the rules see it; nobody's future is known.

    The agents that the model sees are nearest first again; in a view of the rules' own everybody keeps the row.
    """
    view = RuleView.of(scene)
    everyone = torch.arange(len(scene))
    objects, now = view.objects.clone(), view.objects[everyone, moved.row]
    objects[everyone, moved.row] = torch.cat((moved.state[:, XY], now[:, COS_SIN], moved.state[:, 2:], now[:, 6:]), -1)
    past = scene.neighbor_agents_past.clone()
    place, seen = _place_in_past(scene, view, moved.row)
    own = past[everyone, place]
    known = present(own).unsqueeze(-1)
    speed = now[:, OBJECT_VELOCITY].norm(dim=-1)
    times = torch.where(speed > 0.1, moved.state[:, 2:].norm(dim=-1) / speed.clamp(min=0.1), 1.0)[:, None, None]
    changed = own.clone()
    changed[..., XY] = moved.state[:, None, XY] + times * (own[..., XY] - own[:, -1:, XY])
    changed[..., AGENT_VELOCITY] = times * own[..., AGENT_VELOCITY]
    past[everyone, place] = torch.where(known & seen[:, None, None], changed, own)
    order = _nearest_first(past)
    unknown = None if view.object_futures is None else torch.zeros_like(view.object_futures)
    future, tracks = scene.neighbor_agents_future, scene.agent_tracks
    return replace(
        scene,
        neighbor_agents_past=past.gather(1, order[..., None, None].expand_as(past)),
        neighbor_agents_future=None if future is None else torch.zeros_like(future),
        agent_tracks=None if tracks is None else tracks.gather(1, order),
        rules=None if scene.rules is None else replace(view, objects=objects, object_futures=unknown),
    )


def _tried(users: Tensor, draw: Tensor) -> Moved:
    """Road users (B, U, 8), random numbers (B, 4) -> a move. Half keep their speed; standing ones stay standing."""
    near = present(users) & (users[..., XY].norm(dim=-1) < REACH)
    weights = near.to(users)
    weights[:, 0] += 1e-6 * (~near.any(1))  # somebody must be named, also where nobody is there
    share = weights.cumsum(1) / weights.sum(1, keepdim=True)
    row = (share < draw[:, :1]).sum(1).clamp(max=users.shape[1] - 1)
    one = users[torch.arange(len(users)), row]
    along = SHIFT * (2 * draw[:, 1:2] - 1)
    times = torch.where(draw[:, 2:3] < 0.5, torch.ones_like(along), FASTEST * draw[:, 3:4])
    return Moved(row, torch.cat((one[:, XY] + along * one[:, COS_SIN], times * one[:, OBJECT_VELOCITY]), -1))


def _is_possible(view: RuleView, moved: Moved) -> Tensor:
    """(B,) bool: whether there is such a road user, and nobody else stands where it is moved to."""
    everyone = torch.arange(len(moved.row))
    one = view.objects[everyone, moved.row]
    pose = torch.cat((moved.state[:, XY], one[:, COS_SIN]), -1).unsqueeze(1)
    others = view.objects
    apart = separation_of(
        pose.expand(-1, others.shape[1], -1), one[:, None, OBJECT_SIZE], others[..., POSE], others[..., OBJECT_SIZE]
    )
    other = present(others)
    other[everyone, moved.row] = False
    free = ((apart > APART) | ~other).all(1)
    ego = pose.new_tensor([[REAR_TO_CENTER, 0.0, 1.0, 0.0]])
    from_ego = separation_of(ego, ego.new_tensor([EGO_LENGTH, EGO_WIDTH]), pose[:, 0], one[:, OBJECT_SIZE])
    return present(one) & free & (from_ego > APART)


def _is_met(scene: Scene, view: RuleView, moved: Moved) -> Tensor:
    """(B,) bool: whether the way driven comes within 0.3 m of it within the time that it takes to stop."""
    if scene.ego_agent_future is None:
        raise ValueError("encounters need the way that was driven")
    way = pose_frame(scene.ego_agent_future)
    known = present(scene.ego_agent_future)
    one = view.objects[torch.arange(len(moved.row)), moved.row]
    time = DT * torch.arange(1, way.shape[1] + 1, dtype=way.dtype, device=way.device)
    there = moved.state[:, None, XY] + time[:, None] * moved.state[:, None, 2:]
    pose = torch.cat((there, one[:, None, COS_SIN].expand_as(there)), -1)
    ego, size = shift_forward(way, REAR_TO_CENTER), way.new_tensor([EGO_LENGTH, EGO_WIDTH])
    near = known & (separation_of(ego, size, pose, one[:, None, OBJECT_SIZE]) < MARGIN)
    speed = scene.ego_current_state[:, [EgoColumn.VX, EgoColumn.VY]].norm(dim=-1)
    return (near & (time <= stopping_time(speed)[:, None])).any(1) & ~(near & (time <= SOONEST)).any(1)


def _state(users: Tensor) -> Tensor:
    """(B, U, 8) -> (B, U, 4): x, y, vx, vy."""
    return torch.cat((users[..., XY], users[..., OBJECT_VELOCITY]), -1)


def _place_in_past(scene: Scene, view: RuleView, row: Tensor) -> tuple[Tensor, Tensor]:
    """Row (B,) of the rules' view -> its row among the agents that the model sees, and whether it is among them."""
    everyone = torch.arange(len(row))
    if scene.agent_tracks is None or view.object_tracks is None:
        count = scene.neighbor_agents_past.shape[1]
        return row.clamp(max=count - 1), row < count
    same = (scene.agent_tracks == view.object_tracks[everyone, row, None]) & (scene.agent_tracks >= 0)
    return same.long().argmax(1), same.any(1)


def _nearest_first(past: Tensor) -> Tensor:
    """(B, A, 21, 11) -> (B, A) the rows in the order in which a scene holds them."""
    now = past[:, :, -1]
    distance = now[..., [AgentColumn.X, AgentColumn.Y]].norm(dim=-1)
    return distance.masked_fill(~present(now), torch.inf).argsort(dim=1, stable=True)
