"""Alignment that is held by the base planner's own answers instead of logs: specific, and possible on any state.

    L = mean of a * d(answer, base's answer at the same noise) + lambda * sum_i w_i f(J_i / s_i)

d is the error of the diffusion loss, a is 1, and less where the base's answer is itself one to mend. Without rules the
loss is 0 at the base. Ranked or pushed, the second term is gone: where the base's own plans meet somebody, the best of
them that meets nobody stands in for the base's answer of the ego; or the plan that the weights of its scene ask for.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor, nn

from radp.model.chain import Known
from radp.model.encoder import Encoding
from radp.model.loss import add_noise, answer_distance
from radp.model.network import DiffusionModel
from radp.model.sampler import TEMPERATURE, plans_in_metres
from radp.model.schedule import own_times, training_times
from radp.rules import RuleContext
from radp.rules.contact import WITHIN
from radp.rules.motion import way_length
from radp.scenario import DT, Scenario
from radp.scene.samples import Samples
from radp.scene.scene import XY, EgoColumn, Scene, present
from radp.training.align_task import AlignTask
from radp.training.own_plans import OwnPlans
from radp.training.settings import AlignConfig

SLOWED = 29  # apart from other random numbers of a sample
MOTION = [EgoColumn.VX, EgoColumn.VY, EgoColumn.YAW_RATE]


@dataclass(frozen=True)
class StateBatch:
    """B states of a step and their rows (B,) among all samples."""

    rows: np.ndarray
    scene: Scene


@dataclass(frozen=True)
class Answers:
    """C answers and what each should be, (C, P, 81, 4) in target space; `times` (C,)."""

    answer: Tensor
    base: Tensor
    wanted: Tensor  # the base's, or for the ego of a ranked or pushed state the better plan
    ranked: Tensor  # (C,) bool: where it is that plan
    times: Tensor
    judged: slice  # of C: the answers that the rules look at


class AnchoredTask(AlignTask):
    """The states are taken as they are, without augmentation, and all dropout is off: the anchor is exact."""

    def __init__(
        self,
        config: AlignConfig,
        base: DiffusionModel,
        samples: Samples,
        validation: Samples | None = None,
        scenarios: Sequence[Scenario] = (),
        focus: Sequence[int] = (),
        driven: Sequence[int] = (),
    ) -> None:
        self.reference = deepcopy(base).eval().requires_grad_(False)  # before adapters are put into `base`
        super().__init__(config, base, samples, validation, scenarios, focus)
        self.encoder_learns = any(value.requires_grad for value in self.base.encoder.parameters())
        ranked = focus if config.avoid.way == "ranked" else ()
        self.own = OwnPlans(self.reference, self.terms, config, ranked, driven)

    def batch(self, step: int, rank: int, processes: int) -> StateBatch:  # type: ignore[override]
        rows = self.rows(step, rank, processes)
        scene = self.samples.read(rows)
        slowed = np.flatnonzero(~np.isin(rows, self.focus))[: int(self.config.avoid.slowed * len(rows))]
        if len(slowed):
            scene = with_ego_slowed(scene, slowed, self.config.loop.seed, rows)
            rows = rows + len(self.samples) * np.isin(np.arange(len(rows)), slowed)  # states of their own
        return StateBatch(rows, self.with_weights(scene, step, rank))

    def loss(  # type: ignore[override]
        self, model: nn.Module, batch: StateBatch, generator: torch.Generator
    ) -> tuple[Tensor, dict[str, float]]:
        model.eval()
        scene, config = batch.scene, self.config
        observed = self.reference.observe(scene)
        encoding = self.own.encoding(batch.rows, observed)
        known = Known.of(self.base, observed, self.base.encoder(observed) if self.encoder_learns else encoding)
        with torch.no_grad():
            reference = Known.of(self.reference, observed, encoding)
        if config.avoid.way == "chain":
            answers = self._chain(batch, known, reference, generator)
        else:
            answers = self._at_random_noise(batch, known, reference, encoding, generator)
        draws = len(answers.answer) // len(scene)
        contexts = self.terms.contexts(scene, self.base.config.horizon, draws)
        plan, usual = (plans_in_metres(self.base, x, scene)[:, 0] for x in (answers.answer, answers.base))
        free = self._to_mend(usual, contexts) if config.avoid.gate else torch.zeros(len(usual), dtype=torch.bool)
        distance = self._distance(answers, known)
        weight = torch.where(free & ~answers.ranked, config.avoid.free, 1.0)
        weight = weight + config.avoid.keep_up * (~free & ~answers.ranked & _falls_behind(plan.detach(), usual))
        total = anchor = (weight * distance).mean()
        moved = (plan - usual)[..., XY].detach().norm(dim=-1).mean(-1)
        parts = {"anchor": anchor.item(), "to_mend": free.float().mean().item()}
        parts |= {"moved/ordinary": _mean(moved[~free]), "moved/to_mend": _mean(moved[free])}
        if config.rules and config.avoid.way in ("x0", "chain"):
            chosen, times = answers.judged, answers.times[answers.judged]
            counted = (config.min_time <= times) & (times <= config.max_time)
            judged = self.terms.judge(plan[chosen], [_part(context, chosen) for context in contexts], counted)
            drawn = None if scene.rule_weights is None else scene.rule_weights.repeat_interleave(draws, 0)[chosen]
            rule_loss = self.terms.total(judged, drawn, answers.answer)
            total = anchor + rule_loss
            parts |= self.terms.records(judged)
            parts |= {"rules": rule_loss.item(), "opened": judged.opened.float().mean().item()}
        return total, parts

    def _at_random_noise(
        self, batch: StateBatch, known: Known, reference: Known, encoding: Encoding, generator: torch.Generator
    ) -> Answers:
        """Own plans, noised: answers to them are held to the base's, or to the better plan of a ranked state."""
        avoid, states = self.config.avoid, len(batch.rows)
        plans = self.own.plans(batch.rows, batch.scene, encoding)
        better = torch.tensor([plan.better is not None and self.config.rules for plan in plans])
        clean = torch.stack([plan.drawn for plan in plans]).repeat_interleave(avoid.draws, 0)
        learnt = torch.stack([plan.drawn[0] if plan.better is None else plan.better for plan in plans])
        better, learnt = better.repeat_interleave(avoid.draws, 0), learnt.repeat_interleave(avoid.draws, 0)
        if avoid.times == "own":
            time = own_times(states, avoid.draws, self.base.config.sampler_steps, generator)
            share, spread = torch.rand(len(clean), 1, 1, generator=generator), TEMPERATURE
        else:
            time = training_times(states, avoid.draws, generator)
            share, spread = torch.ones(len(clean), 1, 1), 1.0
        clean[better, 0] += (share * (learnt - clean[:, 0]))[better]
        x = add_noise(clean, time, spread * torch.randn(clean[:, :, 1:].shape, generator=generator))
        with torch.no_grad():
            base = reference.answer(x, time)
        wanted = base.clone()
        wanted[better, 0] = learnt[better]
        return Answers(known.answer(x, time), base, wanted, better, time, slice(None))

    def _chain(self, batch: StateBatch, known: Known, reference: Known, generator: torch.Generator) -> Answers:
        """The end of the own chain, where the rules look; and one earlier call, which has the base's answer alone."""
        model, states = self.base.config, len(batch.rows)
        noise = torch.randn(states, 1, model.predicted, model.horizon, 4, generator=generator)
        trace: list[tuple[Tensor, Tensor, Tensor]] = []
        known.draw(noise, self.config.avoid.calls, trace)
        last = trace[-1]
        earlier = trace[int(torch.randint(len(trace) - self.config.avoid.calls, (), generator=generator))]
        with torch.no_grad():
            bases = [reference.answer(x.detach(), time) for time, x, _ in (last, earlier)]
        answers = [last[2], known.answer(earlier[1].detach(), earlier[0])]
        # draws of one state stand in a row
        answer, base = (torch.stack(pair, 1).flatten(0, 1) for pair in (answers, bases))
        times = torch.stack((last[0], earlier[0]), 1).flatten()
        return Answers(answer, base, base, torch.zeros(len(base), dtype=torch.bool), times, slice(0, None, 2))

    def _distance(self, answers: Answers, known: Known) -> Tensor:
        """(C,): the ego's distance, weighted, and the mean over the neighbours that are there."""
        distance = answer_distance(self.base, answers.answer, answers.wanted)
        there = present(known.current)[:, 1:].repeat_interleave(len(distance) // len(known.current), 0)
        neighbours = (distance[:, 1:] * there).sum(-1) / there.sum(-1).clamp(min=1)
        return self.config.ego_weight * distance[:, 0] + neighbours

    def _to_mend(self, plan: Tensor, contexts: Sequence[RuleContext]) -> Tensor:
        """(C,) bool: whether the gate would open for these plans."""
        return torch.stack([self.terms.opens(plan, context).any(-1) for context in contexts]).any(0)


def with_ego_slowed(scene: Scene, slowed: np.ndarray, seed: int, rows: np.ndarray) -> Scene:
    """The scenes of these rows (B,), the ego of `slowed` (S,) standing there or at a share of its speed.

    What an aligned planner comes to and its base hardly ever: it has yielded, and may go.
    """
    ego = scene.ego_current_state.clone()
    for b in slowed.tolist():
        share = np.random.default_rng([seed, SLOWED, int(rows[b])]).uniform(-1, 1)
        ego[b, MOTION] *= max(0.0, share)
        ego[b, [EgoColumn.AX, EgoColumn.AY]] = 0.0
    return replace(scene, ego_current_state=ego)


def _falls_behind(plan: Tensor, usual: Tensor) -> Tensor:
    """(C, H, 4) each -> (C,) bool: whether the plan is the shorter one where the gate looks."""
    steps = round(WITHIN / DT)
    return way_length(plan[:, :steps]) < way_length(usual[:, :steps])


def _part(context: RuleContext, chosen: slice) -> RuleContext:
    return context.rows(torch.arange(len(context.speed_now))[chosen])


def _mean(values: Tensor) -> float:
    return values.mean().item() if len(values) else 0.0
