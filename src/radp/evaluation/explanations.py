"""Which road user matters for a plan, according to several families of explanation: scores (n,), larger = more.

Families of Captum explain how far the road users move the plan (`Replanner.influence`); attributions are summed over
the rows of a road user, and their sign is dropped, because the truth has none.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from radp.attribution.teacher import attribute
from radp.evaluation.replanning import Replanner
from radp.geometry.boxes import separation_of
from radp.model.layers import Attention
from radp.model.network import DiffusionModel
from radp.model.sampler import sample_plans
from radp.rules import Rule
from radp.runs.errors import BadInput
from radp.scenario import PACIFICA
from radp.scene.scene import AGENT_VELOCITY, POSE, AgentColumn, EgoColumn, Scene
from radp.sim.plan import Plan

IG_STEPS, SHAP_SAMPLES, PERMUTATIONS = 12, 6, 6
TTC_TIMES = torch.arange(0, 81) * 0.1  # s


@dataclass(frozen=True)
class Question:
    """A moment with its planner's forecasts, the rules that judge, and the seed of what is drawn."""

    moment: Replanner
    scene: Scene  # B = 1, with what the rules look at
    rules: tuple[Rule, ...]
    seed: int = 0


def pressure_shares(question: Question, shuffled: bool = False) -> Tensor:
    """Share of each road user in the collision cost of the plan: pressure's own account of who presses.

    With `shuffled`, the rule sees each road user with the forecast of the next one.
    """
    moment = question.moment
    drawn = sample_plans(moment.model, moment.scene, noise=moment.noise)
    joint = drawn.trajectories[:, 0]
    forecasts = joint[:, 1:]
    if shuffled and len(moment):
        order = torch.arange(forecasts.shape[1])
        order[moment.rows] = order[moment.rows.roll(1)]
        forecasts = forecasts[:, order]
    scene = question.scene
    assert scene.agent_tracks is not None
    tracks = scene.agent_tracks[:, : forecasts.shape[1]]
    plan = Plan(trajectory=joint[:, 0], predictions=forecasts, predicted_tracks=tracks)
    why = attribute(plan, scene, rules=question.rules)
    assert why.tracks is not None
    share = dict(zip(why.tracks[0].tolist(), why.agent_share[0].tolist()))
    return torch.tensor([share.get(track, 0.0) for track in scene.agent_tracks[0, moment.rows].tolist()])


def integrated_gradients(question: Question) -> Tensor:
    """Gradients along the straight way from no road users to all of them (Sundararajan et al. 2017)."""
    captum, moment = _captum(), question.moment
    found = captum.IntegratedGradients(moment.influence).attribute(moment.past, n_steps=IG_STEPS)
    return _by_agent(found)


def gradient_shap(question: Question) -> Tensor:
    """The same at random places of the way (Lundberg and Lee 2017)."""
    captum, moment = _captum(), question.moment
    with _seeded(question.seed):
        found = captum.GradientShap(moment.influence).attribute(
            moment.past, baselines=torch.zeros_like(moment.past), n_samples=SHAP_SAMPLES
        )
    return _by_agent(found)


def occlusion(question: Question) -> Tensor:
    """Influence that is lost when one road user is hidden (Zeiler and Fergus 2014)."""
    captum, moment = _captum(), question.moment
    window = (1, *moment.past.shape[2:])
    with torch.no_grad():
        found = captum.Occlusion(moment.influence).attribute(
            moment.past, sliding_window_shapes=window, strides=window, perturbations_per_eval=len(moment)
        )
    return found[0, :, 0, 0].abs()


def shapley_sampling(question: Question) -> Tensor:
    """Mean influence that a road user adds to those that come before it, over random orders (Castro et al. 2009)."""
    captum, moment = _captum(), question.moment
    groups = torch.arange(len(moment))[None, :, None, None].expand_as(moment.past).contiguous()
    with _seeded(question.seed), torch.no_grad():
        found = captum.ShapleyValueSampling(moment.influence).attribute(
            moment.past, feature_mask=groups, n_samples=PERMUTATIONS, perturbations_per_eval=len(moment)
        )
    return found[0, :, 0, 0].abs()


def attention_rollout(question: Question) -> Tensor:
    """What the ego's token attends to, through all layers of the encoder (Abnar and Zuidema 2020).

    Rollout of the encoder: product of (A + 1) / 2. The ego looks at scene tokens by cross-attention and at neighbours
    by self-attention; the mean of both, over the decoder's blocks, in the last denoising call.
    """
    moment, model = question.moment, question.moment.model
    with _attention_of(model) as seen:
        sample_plans(model, moment.scene, noise=moment.noise)
    inside = [seen[m] for m in model.encoder.fusion.modules() if isinstance(m, Attention)]  # in the order of the blocks
    rolled = torch.eye(inside[0].shape[-1])
    for weights in inside:
        rolled = (weights + torch.eye(len(weights))) / 2 @ rolled
    at_scene = torch.stack([seen[block.cross_attn][0] for block in model.decoder.blocks]).mean(0)
    at_neighbours = torch.stack([seen[block.attn][0] for block in model.decoder.blocks]).mean(0)
    return ((at_scene @ rolled)[moment.rows] + at_neighbours[1 + moment.rows]) / 2


def nearest(question: Question) -> Tensor:
    """Minus the distance of the box centres from the ego's."""
    now = question.moment.past[0, :, -1]
    return -(now[:, :2] - now.new_tensor([PACIFICA.rear_axle_to_center, 0.0])).norm(dim=-1)


def lowest_ttc(question: Question) -> Tensor:
    """1 / time until the boxes meet at constant velocity, within 8 s; 0 if they do not."""
    now, scene = question.moment.past[0, :, -1], question.moment.scene
    speed = scene.ego_current_state[0, EgoColumn.VX]
    ego = torch.zeros(len(TTC_TIMES), 4)
    ego[:, 0], ego[:, 2] = PACIFICA.rear_axle_to_center + speed * TTC_TIMES, 1.0
    poses = now[:, None, POSE].repeat(1, len(TTC_TIMES), 1)
    poses[..., :2] += now[:, None, AGENT_VELOCITY] * TTC_TIMES[:, None]
    own = ego.new_tensor([PACIFICA.length, PACIFICA.width])
    size = now[:, None, [AgentColumn.LENGTH, AgentColumn.WIDTH]]
    meets = separation_of(ego, own, poses, size) < 0
    first = torch.where(meets.any(-1), TTC_TIMES[meets.int().argmax(-1)].clamp(min=0.1), torch.inf)
    return 1 / first


def at_random(question: Question) -> Tensor:
    """Knows nothing."""
    return torch.rand(len(question.moment), generator=torch.Generator().manual_seed(question.seed))


FAMILIES: dict[str, Callable[[Question], Tensor]] = {
    "pressure": pressure_shares,
    "integrated gradients": integrated_gradients,
    "gradient SHAP": gradient_shap,
    "occlusion": occlusion,
    "Shapley sampling": shapley_sampling,
    "attention rollout": attention_rollout,
    "nearest": nearest,
    "lowest TTC": lowest_ttc,
    "random": at_random,
}


def randomised(model: DiffusionModel, seed: int = 0) -> DiffusionModel:
    """The model with the values of every weight matrix in random order: as large as before, and meaning nothing."""
    draw = torch.Generator().manual_seed(seed)

    def mixed(value: Tensor) -> Tensor:
        order = torch.randperm(value.numel(), generator=draw)
        return value.flatten()[order].view_as(value) if value.dim() > 1 else value

    other = DiffusionModel(model.config, model.normaliser)
    other.load_state_dict({name: mixed(value) for name, value in model.state_dict().items()})
    return other.eval()


def _by_agent(values: Tensor) -> Tensor:
    """Attributions (1, n, 21, 11) -> (n,) magnitude of their sum."""
    return values.detach()[0].flatten(1).sum(1).abs()


def _captum() -> Any:
    try:
        import captum.attr
    except ImportError:
        raise BadInput("explanations of other families need captum: pip install 'radp[evaluate]'") from None
    return captum.attr


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Captum draws from the global generators of torch and numpy; both are as before afterwards."""
    state = np.random.get_state()  # noqa: NPY002
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002
        try:
            yield
        finally:
            np.random.set_state(state)  # noqa: NPY002


@contextmanager
def _attention_of(model: nn.Module) -> Iterator[dict[nn.Module, Tensor]]:
    """Attention weights (queries, keys) of the first scene by module, mean over heads, of the last call of each."""
    seen: dict[nn.Module, Tensor] = {}

    def keep(module: Attention, inputs: tuple[Any, ...]) -> None:
        query, (keys, _), bias = inputs
        q = module._split(module.q(query))
        scores = q @ keys.transpose(-1, -2) / q.shape[-1] ** 0.5
        seen[module] = (scores if bias is None else scores + bias).softmax(-1).mean(1)[0]

    hooks = [m.register_forward_pre_hook(keep) for m in model.modules() if isinstance(m, Attention)]
    try:
        with torch.no_grad():
            yield seen
    finally:
        for hook in hooks:
            hook.remove()
