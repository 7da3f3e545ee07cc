"""Faithfulness: do explanations point at the road users without whom the plan would be another one?

Truth: take a road user away, plan again with the same noise, and measure how far the plan moves.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from radp.attribution.online import own_rule_set
from radp.evaluation.closed_loop import Run
from radp.evaluation.explanations import FAMILIES, Question, pressure_shares, randomised
from radp.evaluation.replanning import Replanner, distance
from radp.model.network import DiffusionModel
from radp.planners import load_planner
from radp.planners.diffusion import DiffusionPlanner
from radp.rules import needs_road, rule_set
from radp.runs.errors import BadInput
from radp.runs.progress import Progress
from radp.scenario.parts import log_of
from radp.scene.builder import build_scenes
from radp.sim.driven_log import driven_log
from radp.sim.observation import Observation
from radp.sim.replay import observe_logs
from radp.statistics.bootstrap import RESAMPLES, means_of
from radp.statistics.estimate import Estimate
from radp.statistics.ranks import spearman

MOST, FEWEST = 8, 3  # road users that are looked at, and that a moment must have
SUBSETS = 12  # random removals for the infidelity
MATTERS = 0.05  # m that the plan must move without all of them, for curves to mean anything
STATISTICS = ("rho", "top1", "deletion", "insertion", "infidelity")


@dataclass(frozen=True)
class Family:
    """One family over all moments, with intervals clustered by log."""

    name: str
    figures: dict[str, Estimate]  # STATISTICS
    less: dict[str, Estimate]  # pressure minus this one, paired by moment; empty for pressure itself
    silent: float  # share of moments in which it calls all road users alike
    same: Estimate  # rho between its scores with the weights and with random ones
    milliseconds: float  # of the processor, for one moment


@dataclass(frozen=True)
class Faithfulness:
    """What was found at `moments` moments, in `moved` of which the road users move the plan at all."""

    planner: str
    moments: int
    moved: int
    logs: int
    families: tuple[Family, ...]
    shuffled: dict[str, Estimate]  # STATISTICS of pressure under shuffled rules


def measure_faithfulness(
    run: Run, moments: int = 32, sanity: int = 8, seed: int = 0, resamples: int = RESAMPLES
) -> Faithfulness:
    """At moments spread evenly over the drives of a run; `sanity` of them are also asked with random weights."""
    planner = load_planner(run.job.planner)
    if not isinstance(planner, DiffusionPlanner) or planner.guidance is not None:
        raise BadInput(f"{run.job.planner!r} is no learned planner without guidance, so no family can explain it")
    rules = rule_set(run.job.rule_set or own_rule_set(planner))
    scrambled = randomised(planner.model, seed)
    rows: list[Asked] = []
    logs: list[str] = []
    with Progress("moments explained", moments) as progress:
        for k, (token, observation) in enumerate(moments_of(run, moments, seed)):
            scene = build_scenes(observation, replace(planner.scenes, rules=True, road=needs_road(rules)))
            question = Question(Replanner(planner.model, scene, seed + k, MOST), scene, tuple(rules), seed + k)
            if len(question.moment) >= FEWEST:
                rows.append(ask(question, scrambled if len(rows) < sanity else None))
                logs.append(log_of(token))
            progress.advance()
    if not rows:
        raise BadInput(f"{run.folder.path} has no moment with at least {FEWEST} road users")
    return _summary(run.job.planner, rows, logs, seed, resamples)


def moments_of(run: Run, count: int, seed: int) -> Iterator[tuple[str, Observation]]:
    """Token and observation of `count` moments: drives spread evenly over the run, each at a random time."""
    draw = np.random.default_rng([seed, 5])
    there = [i for i, token in enumerate(run.split.tokens()) if token in run.store]
    for place in np.linspace(0, len(there) - 1, count).round().astype(int) if there else ():
        rollout = run.store.read(run.split[there[place]])
        if rollout.failure is None and len(rollout.ego) > 2:
            first = int(draw.integers(0, len(rollout.ego) - 1))
            yield rollout.scenario.token, observe_logs([driven_log(rollout, first)], seed=seed)


@dataclass(frozen=True)
class Asked:
    """One moment: what each family said, how well it did, and how long it took."""

    figures: dict[str, dict[str, float]]  # family -> STATISTICS
    silent: dict[str, bool]
    same: dict[str, float]  # NaN where random weights were not asked
    seconds: dict[str, float]
    shuffled: dict[str, float]
    moved: bool


def ask(question: Question, scrambled: DiffusionModel | None = None) -> Asked:
    """All families about one moment."""
    moment = question.moment
    scores, seconds = {}, {}
    for name, explain in FAMILIES.items():
        begin = time.process_time()
        scores[name] = explain(question).detach().double().numpy()
        seconds[name] = time.process_time() - begin
    trial = RemovalTrial.of(moment, question.seed)
    same = dict.fromkeys(FAMILIES, np.nan)
    if scrambled is not None:
        other = replace(question, moment=Replanner(scrambled, question.scene, question.seed, len(moment)))
        for name, explain in FAMILIES.items():
            same[name] = rank_correlation(scores[name], explain(other).detach().double().numpy())
    mixed = pressure_shares(question, shuffled=True).double().numpy()
    return Asked(
        figures={name: trial.judge(values) for name, values in scores.items()},
        silent={name: bool(np.ptp(values) == 0) for name, values in scores.items()},
        same=same,
        seconds=seconds,
        shuffled=trial.judge(mixed),
        moved=trial.whole >= MATTERS,
    )


@dataclass(frozen=True)
class RemovalTrial:
    """The truth about one moment, and what is needed to judge scores by it."""

    moment: Replanner
    truth: np.ndarray  # (n,) metres that the plan moves without each
    whole: float  # metres without all
    subsets: Tensor  # (K, n) bool, random removals
    moves: np.ndarray  # (K,) metres without each subset
    ties: np.ndarray  # (n,) random numbers that order equal scores

    @classmethod
    def of(cls, moment: Replanner, seed: int) -> RemovalTrial:
        n, draw = len(moment), np.random.default_rng([seed, 11])
        one = torch.eye(n, dtype=torch.bool)
        subsets = torch.from_numpy(draw.random((SUBSETS, n)) < 0.5)
        truth, moves = (distance(moment.without(gone), moment.plan).double().numpy() for gone in (one, subsets))
        whole = float(distance(moment.alone, moment.plan))
        return cls(moment, truth, whole, subsets, moves, draw.random(n))

    def judge(self, scores: np.ndarray) -> dict[str, float]:
        """STATISTICS of scores (n,). Who calls all alike has a rho of 0; curves need a plan that moves."""
        rho = rank_correlation(scores, self.truth)
        best = scores == scores.max()
        return {
            "rho": 0.0 if np.ptp(scores) == 0 else rho,
            "top1": float(best[self.truth.argmax()] / best.sum()),
            "deletion": self.deletion(scores) if self.whole >= MATTERS else np.nan,
            "insertion": self.insertion(scores) if self.whole >= MATTERS else np.nan,
            "infidelity": self.infidelity(scores),
        }

    def _order(self, scores: np.ndarray) -> np.ndarray:
        """(n,) places, highest score first, equal ones in random order."""
        return np.lexsort((self.ties, -scores))

    def _first(self, scores: np.ndarray) -> Tensor:
        """(n - 1, n) bool: the first 1, 2, ... n - 1 of the order."""
        n, order = len(scores), self._order(scores)
        chosen = np.zeros((n - 1, n), dtype=bool)
        for k in range(n - 1):
            chosen[k:, order[k]] = True
        return torch.from_numpy(chosen)

    def deletion(self, scores: np.ndarray) -> float:
        """Mean share of the whole move when the first 1, 2, ... of the order are taken away; higher is better."""
        moved = distance(self.moment.without(self._first(scores)), self.moment.plan).double().numpy()
        return float(np.clip(moved / self.whole, 0.0, 2.0).mean())

    def insertion(self, scores: np.ndarray) -> float:
        """Mean share of the whole move that is won back when only the first 1, 2, ... are there; higher is better."""
        left = distance(self.moment.without(~self._first(scores)), self.moment.plan).double().numpy()
        return float(np.clip(1.0 - left / self.whole, -1.0, 1.0).mean())

    def infidelity(self, scores: np.ndarray) -> float:
        """Squared error of the scores' sums as forecasts of random removals, over that of calling all alike.

        After Yeh et al. (2019), each at its best scale; 0 = every removal foretold, 1 = as good as calling all alike.
        Scores below 0 count from the least.
        """
        plain = self._error(np.ones(len(scores)))
        known = scores - min(0.0, scores.min())
        return self._error(known if np.ptp(scores) > 0 else np.ones(len(scores))) / plain if plain > 0 else np.nan

    def _error(self, scores: np.ndarray) -> float:
        sums = self.subsets.double().numpy() @ scores
        scale = max(0.0, (sums @ self.moves) / max((sums**2).sum(), 1e-12))
        return float(((scale * sums - self.moves) ** 2).sum())


def rank_correlation(a: np.ndarray, b: np.ndarray) -> float:
    return float(spearman(a[None], b[None])[0])


def _summary(planner: str, rows: Sequence[Asked], logs: Sequence[str], seed: int, resamples: int) -> Faithfulness:
    def means(values: Sequence[Sequence[float]] | np.ndarray) -> list[Estimate]:
        return means_of(np.asarray(values, dtype=np.float64), seed, resamples, list(logs))

    families = []
    for name in FAMILIES:
        own = [[row.figures[name][s] for row in rows] for s in STATISTICS]
        ours = [[row.figures["pressure"][s] for row in rows] for s in STATISTICS]
        less = means(np.array(ours) - np.array(own)) if name != "pressure" else []
        families.append(
            Family(
                name,
                dict(zip(STATISTICS, means(own))),
                dict(zip(STATISTICS, less)),
                float(np.mean([row.silent[name] for row in rows])),
                means([[row.same[name] for row in rows]])[0],
                1e3 * float(np.mean([row.seconds[name] for row in rows])),
            )
        )
    shuffled = dict(zip(STATISTICS, means([[row.shuffled[s] for row in rows] for s in STATISTICS])))
    moved = sum(row.moved for row in rows)
    return Faithfulness(planner, len(rows), moved, len(set(logs)), tuple(families), shuffled)
