"""What the base planner makes of each state, kept in memory: the encoding of the scene, and plans of its own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from radp.model.chain import Known
from radp.model.encoder import Encoding
from radp.model.loss import continued
from radp.model.network import DiffusionModel
from radp.model.sampler import plans_in_metres
from radp.model.target import TargetSpace
from radp.rules import RuleContext, rule_costs
from radp.runs.errors import BadInput
from radp.scene.scene import Scene
from radp.training.copies import as_driven, copies_of, least_change
from radp.training.haste import driven_on
from radp.training.loop import step_seed
from radp.training.pushes import give_way, pushes_of
from radp.training.rule_terms import COMPRESSED_SCALES, RuleTerms, to_mend
from radp.training.settings import AlignConfig

Value = TypeVar("Value")


@dataclass(frozen=True)
class OwnPlan:
    """An own plan with its predictions (P, 81, 4) in target space, and what the ego should learn instead (81, 4)."""

    drawn: Tensor
    better: Tensor | None = None
    pushes: Tensor | None = None  # (M, 9, 2) what each rule asks for, if weights are to say how much of it


class OwnPlans:
    """Encodings and plans of the base do not change: both are made once a state."""

    def __init__(
        self,
        model: DiffusionModel,
        terms: RuleTerms,
        config: AlignConfig,
        ranked: Sequence[int],
        driven: Sequence[int] = (),
    ) -> None:
        self.model, self.terms, self.config = model, terms, config
        self.space = TargetSpace(model.config, model.normaliser)
        self.ranked, self.driven = {int(row) for row in ranked}, {int(row) for row in driven}
        self._encodings: dict[int, tuple[Tensor, Tensor]] = {}
        self._plans: dict[int, OwnPlan] = {}

    @torch.no_grad()
    def encoding(self, rows: np.ndarray, observed: Scene) -> Encoding:
        """Rows (B,) and their normalised scene -> its encoding."""
        new = [b for b, row in enumerate(rows) if int(row) not in self._encodings]
        found = dict(self._encodings)
        if new:
            made = self.model.encoder(observed[new])
            found |= {int(rows[b]): (made.tokens[i].clone(), made.padded[i].clone()) for i, b in enumerate(new)}
            self._encodings = self._bounded(found)
        tokens, padded = zip(*(found[int(row)] for row in rows))
        return Encoding(torch.stack(tokens), torch.stack(padded))

    @torch.no_grad()
    def plans(self, rows: np.ndarray, scene: Scene, encoding: Encoding) -> list[OwnPlan]:
        """One own plan of each state; of ranked states that need it, with a better one where there is one."""
        found = dict(self._plans)
        for count in (1, self.config.avoid.plans):
            new = [b for b, row in enumerate(rows) if int(row) not in found and self._count(row) == count]
            if new:
                chosen = Encoding(encoding.tokens[new], encoding.padded[new])
                found |= zip(rows[new].tolist(), self._made(rows[new], scene[new], chosen, count))
        self._plans = self._bounded(found)
        plans = [found[int(row)] for row in rows]
        return self._given_way(scene, plans) if self.config.avoid.way == "pushed" else plans

    def _count(self, row: int) -> int:
        return self.config.avoid.plans if int(row) in self.ranked and not self.config.avoid.copies else 1

    def _made(self, rows: np.ndarray, scene: Scene, encoding: Encoding, count: int) -> list[OwnPlan]:
        size = self.model.config
        shape = (count, size.predicted, size.horizon, 4)
        seeds = [step_seed(self.config.loop.seed + 2, int(row), 0) for row in rows]
        noise = torch.stack([torch.randn(shape, generator=torch.Generator().manual_seed(seed)) for seed in seeds])
        clean = Known.of(self.model, self.model.observe(scene), encoding).draw(noise)
        if self.config.avoid.copies:
            return self._mended(rows, scene, clean)
        if self.config.avoid.way == "pushed":
            plan = self.space.to_metres(clean)[:, 0, 1:]
            asked = pushes_of(
                plan, self.terms.contexts(scene, plan.shape[1]), self.terms.rules, self.config.avoid.steer
            )
            return [OwnPlan(clean[b].clone(), pushes=asked[b].clone()) for b in range(len(rows))]
        choice = [-1] * len(rows)
        if count > 1:
            plans = plans_in_metres(self.model, clean, scene)[:, 0]
            choice = best_of(plans, self.terms.contexts(scene, plans.shape[1], count), self.terms, count).tolist()
        drawn = clean.unflatten(0, (len(rows), count))
        best = [drawn[b, max(0, k)].clone() for b, k in enumerate(choice)]
        return [OwnPlan(plan, plan[0] if k >= 0 else None) for plan, k in zip(best, choice)]

    def _mended(self, rows: np.ndarray, scene: Scene, clean: Tensor) -> list[OwnPlan]:
        """Own plans (B, P, 81, 4), with a copy to be learnt: of ranked states one that mends, else one that goes on."""
        better: dict[int, Tensor] = {}
        ranked = np.flatnonzero([int(row) in self.ranked for row in rows]).tolist()
        if ranked:
            own, contexts = self._of(scene, clean, ranked)
            copies = copies_of(own)
            choice = least_change(own, copies, contexts, self.config.avoid.urgent)
            chosen = copies[torch.arange(len(choice)), choice.clamp(min=0)]
            went = torch.tensor([int(rows[b]) in self.driven for b in ranked])
            if bool(went.any()):
                chosen = torch.where(went[:, None, None], driven_copy(own, scene[ranked]), chosen)
            learnt = self._in_place_of(clean[ranked], chosen)
            better = {b: learnt[i] for i, b in enumerate(ranked) if went[i] or choice[i] >= 0}
        others = [b for b in range(len(rows)) if b not in better]
        if self.config.avoid.haste and others:
            faster, free = driven_on(*self._of(scene, clean, others), self.config.avoid.haste)
            learnt = self._in_place_of(clean[others], faster)
            better |= {b: learnt[i] for i, b in enumerate(others) if free[i]}
        return [OwnPlan(clean[b].clone(), better[b].clone() if b in better else None) for b in range(len(rows))]

    def _of(self, scene: Scene, clean: Tensor, chosen: list[int]) -> tuple[Tensor, list[RuleContext]]:
        """The ego's plans (C, H, 4) of these states in metres, and how the others move."""
        some = scene[chosen]
        own = plans_in_metres(self.model, clean[chosen], some)[:, 0]
        return own, self.terms.contexts(some, own.shape[1])

    def _in_place_of(self, clean: Tensor, plan: Tensor) -> Tensor:
        """Plans of the ego (C, H, 4) in metres -> (C, 81, 4) in target space."""
        metres = self.space.to_metres(clean)
        metres[:, 0, 1:] = plan
        return self.space.from_metres(metres)[:, 0]

    def _given_way(self, scene: Scene, plans: Sequence[OwnPlan]) -> list[OwnPlan]:
        """The plans, each with the one that the weights of its scene ask for, unless that is the same."""
        assert scene.rule_weights is not None
        pushes = torch.stack([one.pushes for one in plans if one.pushes is not None])
        asked = (scene.rule_weights[:, :, None, None] * pushes).flatten(1).any(1).nonzero().squeeze(1).tolist()
        if not asked:
            return list(plans)
        some, weights = scene[asked], scene.rule_weights[asked]
        metres = self.space.to_metres(torch.stack([plans[b].drawn for b in asked]))
        plan = metres[:, 0, 1:]
        contexts = self.terms.contexts(some, plan.shape[1])
        metres[:, 0, 1:] = give_way(plan, pushes[asked], weights, contexts, self.terms.rules)
        better = dict(zip(asked, self.space.from_metres(metres)[:, 0]))
        return [replace(one, better=better.get(b)) for b, one in enumerate(plans)]

    def _bounded(self, kept: dict[int, Value]) -> dict[int, Value]:
        """Without the oldest, if there are too many."""
        first = max(0, len(kept) - self.config.avoid.kept_states)
        return dict(list(kept.items())[first:]) if first else kept


def driven_copy(own: Tensor, scene: Scene) -> Tensor:
    """Plans (B, H, 4) of scenes with futures -> their copies that go as the drives of these scenes did."""
    if scene.ego_agent_future is None:
        raise BadInput("these samples have no futures to go by")
    future, known = continued(scene.ego_agent_future[:, : own.shape[1]])
    return as_driven(own, future.to(own), known)


def best_of(plans: Tensor, contexts: Sequence[RuleContext], terms: RuleTerms, count: int) -> Tensor:
    """Plans (B * count, H, 4), those of one state in a row -> (B,) the best of each state.

    That is the one with the smallest sum of w_i log(1 + J_i / 10) among those that come within 0.3 m of nobody and keep
    their corners on the road, for 4 s. -1 if there is none, or if all are like that: then nothing is to be mended.
    """
    cost, spoilt = plans.new_zeros(len(plans)), torch.zeros(len(plans), dtype=torch.bool)
    for context in contexts:
        costs = rule_costs(plans, context, terms.rules)
        cost = cost + (torch.log1p(costs / COMPRESSED_SCALES[1]) * terms.weights).sum(-1)
        spoilt |= torch.stack(to_mend(plans, context, terms.avoid.urgent)).any(0)
    cost, spoilt = cost.masked_fill(spoilt, torch.inf).view(-1, count), spoilt.view(-1, count)
    return torch.where(spoilt.any(1) & ~spoilt.all(1), cost.argmin(1), -1)
