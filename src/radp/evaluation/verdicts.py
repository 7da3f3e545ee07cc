"""Do smooth costs and exact verdicts of the rules agree on the plans of real drives?"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from radp.rules import Rule, RuleContext, default_rules, rule_costs
from radp.scene.scene import Scene
from radp.statistics.ranks import ranks


@dataclass(frozen=True)
class Agreement:
    """One rule on N plans."""

    rule: str
    plans: int
    broken: float  # share of plans that the exact verdict calls broken
    order: float  # chance that a broken plan costs more than one that is not (ties half); NaN without both
    best: float  # share of plans on which cost and verdict agree, at the threshold on the cost that suits best

    def row(self) -> str:
        order = "n/a" if np.isnan(self.order) else f"{self.order:.3f}"
        return f"| {self.rule} | {self.plans} | {100 * self.broken:.1f} % | {order} | {100 * self.best:.1f} % |"


HEADER = "| rule | plans | broken | broken costs more | agree |\n|---|---|---|---|---|"


@torch.no_grad()
def costs_and_verdicts(
    plans: torch.Tensor, scene: Scene, rules: Sequence[Rule] | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """plans (B, H, 4) -> costs (B, M) and verdicts (B, M) bool; everybody else keeps their velocity."""
    rules = rules or default_rules()
    context = RuleContext.from_scene(scene, horizon=plans.shape[1]).bind(plans)
    verdicts = torch.stack([rule.violated(plans, context) for rule in rules], -1)
    return rule_costs(plans, context, rules).numpy(), verdicts.numpy()


def agreements(pieces: Iterable[tuple[np.ndarray, np.ndarray]], rules: Sequence[Rule] | None = None) -> list[Agreement]:
    """Costs and verdicts (B, M) of many pieces -> one row per rule."""
    parts = list(pieces)
    costs, broken = (np.concatenate([part[i] for part in parts]) for i in (0, 1))
    return [agreement(rule.name, costs[:, i], broken[:, i]) for i, rule in enumerate(rules or default_rules())]


def agreement(name: str, cost: np.ndarray, broken: np.ndarray) -> Agreement:
    """cost (N,), broken (N,) bool."""
    order = np.argsort(cost, kind="stable")
    cost, broken = cost[order], broken[order]
    count, bad = len(cost), int(broken.sum())
    both = 0 < bad < count
    area = (ranks(cost)[broken].sum() - bad * (bad + 1) / 2) / (bad * (count - bad)) if both else np.nan
    cuts = np.append(
        np.flatnonzero(np.append(True, cost[1:] != cost[:-1])), count
    )  # plans from here on count as broken
    below = np.concatenate(([0], np.cumsum(~broken)))[cuts]  # rightly called kept
    above = bad - np.concatenate(([0], np.cumsum(broken)))[cuts]  # rightly called broken
    return Agreement(name, count, bad / max(1, count), float(area), float((below + above).max() / max(1, count)))
