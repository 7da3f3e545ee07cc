"""How rules are weighed in the alignment loss: fixed as in the paper, drawn by sample, by dual ascent, by tiers."""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch import Tensor, nn

from radp.model.rule_weights import parse_weights
from radp.rules import Rule
from radp.rules.rulebook import tier_of
from radp.runs.errors import BadInput
from radp.training.settings import WeightingConfig

MOST_FACTOR = 10.0  # dual ascent moves a weight up to this many times from where it started, to either side
ROUNDS = 8  # of putting a gradient at right angles to those of higher tiers


def draw_log_weights(
    count: int, rules: int, spread: float, generator: torch.Generator, upwards: bool = False
) -> Tensor:
    """(count, rules), even between -log spread, or 0 if only `upwards`, and log spread.

    Of four samples two change one rule alone, one changes all, and one keeps the default, so that this is learnt too.
    """
    drawn = (2 * torch.rand(count, rules, generator=generator) - 1) * math.log(spread)
    changed = torch.nn.functional.one_hot(torch.randint(rules, (count,), generator=generator), rules)
    changed[0::4], changed[2::4] = 1, 0
    return (drawn.abs() if upwards else drawn) * changed


class DualAscent(nn.Module):
    """w_i <- w_i exp(eta (cost_i - budget_i)), clipped; rules without a budget stay."""

    log_factor: Tensor

    def __init__(self, rules: Sequence[Rule], step: float, budgets: Sequence[str]) -> None:
        super().__init__()
        given, names = parse_weights(budgets), [rule.name for rule in rules]
        for name in given:
            if name not in names:
                raise BadInput(f"no rule {name!r} to give a budget; expected one of {', '.join(names)}")
        if not given:
            raise BadInput("dual ascent needs a budget for some rule, such as --budgets collision=0.05")
        self.step, self.budgets = step, given
        self.register_buffer("log_factor", torch.zeros(len(names)))
        self._budget = torch.tensor([given.get(name, 0.0) for name in names])
        self._has = torch.tensor([name in given for name in names])

    @torch.no_grad()
    def update(self, costs: Tensor) -> None:
        """costs (C, M) of a batch, not weighed, over all processes."""
        mean = costs.detach().mean(0).to(self.log_factor)
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            torch.distributed.all_reduce(mean)
            mean /= torch.distributed.get_world_size()
        moved = self.log_factor + self.step * (mean - self._budget) * self._has
        self.log_factor.copy_(moved.clamp(-math.log(MOST_FACTOR), math.log(MOST_FACTOR)))

    def forward(self) -> Tensor:
        """(M,) factors on the weights."""
        return self.log_factor.exp()


class RuleWeighting:
    """The sum over rules of the alignment loss."""

    def __init__(self, config: WeightingConfig, rules: Sequence[Rule], memory: nn.Module) -> None:
        if config.spread < 1.0:
            raise BadInput(f"spread is {config.spread}, expected at least 1")
        if config.budgets and not config.dual_step:
            raise BadInput("budgets are for dual ascent: add --dual-step")
        self.config, self.rules = config, tuple(rules)
        self.weights = torch.tensor([rule.weight for rule in rules])
        self.dual: DualAscent | None = None
        if config.dual_step:
            self.dual = DualAscent(rules, config.dual_step, config.budgets)
            memory.add_module("dual", self.dual)  # so that it is kept with the scales
        self.tiers = [[i for i, rule in enumerate(rules) if tier_of(rule.name) == tier]
                      for tier in sorted({tier_of(rule.name) for rule in rules})]  # fmt: skip

    def __call__(self, terms: Tensor, costs: Tensor, log_weights: Tensor | None, output: Tensor | None) -> Tensor:
        """terms, costs (C, M) of the plans that count, log-weights (C, M) of their samples, the network's answer that
        they come from -> the weighted sum, whose gradient is what is learnt."""
        weights = self.weights
        if self.dual is not None:
            self.dual.update(costs)
            weights = weights * self.dual()
        if log_weights is None:
            by_rule = terms.mean(0) * weights
        else:
            given = log_weights.exp() - 1 if self.config.around_default else log_weights.exp()
            by_rule = (terms * given).mean(0) * weights
        return self._one_sided(by_rule, output) if self.config.tiers and output is not None else by_rule.sum()

    def _one_sided(self, by_rule: Tensor, output: Tensor) -> Tensor:
        """The sum (M,); draw by draw, its gradient at the output (D, ...) has no tier that pulls against a higher."""
        parts = [by_rule[tier].sum() for tier in self.tiers]
        pulls = [torch.autograd.grad(part, output, retain_graph=True)[0].flatten(1) for part in parts]
        pull = one_sided(pulls).view_as(output).detach()
        surrogate = (output * pull).sum()
        return surrogate - surrogate.detach() + by_rule.sum().detach()

    def records(self) -> dict[str, float]:
        """What is logged beside the loss."""
        if self.dual is None:
            return {}
        return {f"weight/{rule.name}": float(w) for rule, w in zip(self.rules, self.weights * self.dual())}


def one_sided(pulls: Sequence[Tensor]) -> Tensor:
    """Gradients (D, F) of tiers, the highest first -> their sum (D, F), each without what goes against those above.

    A gradient that points against that of a higher tier is put at right angles to it. Doing so for one tier may turn it
    against another, so it goes round several times and ends with the highest, for which it holds exactly.
    """
    kept = [pulls[0]]
    for pull in pulls[1:]:
        for _ in range(ROUNDS):
            for above in reversed(kept):
                along = (pull * above).sum(1, keepdim=True).clamp(max=0)
                pull = pull - along / above.square().sum(1, keepdim=True).clamp(min=1e-30) * above
        kept.append(pull)
    return torch.stack(kept).sum(0)
