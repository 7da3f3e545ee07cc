"""Training the attribution head on cached teacher pressures (Eq. 12, appendix C.4)."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import smooth_l1_loss, softplus

from radp.attribution.cache import Cache
from radp.model.head import AttributionHead, HeadConfig, HeadInputs, save_head
from radp.runs.folder import RunFolder
from radp.statistics.ranks import spearman
from radp.training.loop import fit, is_main_process
from radp.training.settings import HeadTraining

HUBER = 0.2
RANK_TEMPERATURE, RANK_MARGIN = 0.2, 0.05
LEVEL_PIECES, LEAST_SLOPE = 40, 0.01
SILENCE = 1e-18  # where single precision begins to lose the teacher's gradients


@dataclass(frozen=True)
class Tail:
    """How samples with high pressure of a rule are favoured: drawn more often, and weighted in the regression."""

    percentile: float
    draw: float
    weight: float
    of_positive: bool = False  # percentile of the positive pressures only


TAILS = {"collision": Tail(75.0, 3.0, 2.0, of_positive=True), "lane": Tail(85.0, 1.5, 1.0)}
OTHER_TAIL = Tail(85.0, 1.5, 1.25)


@dataclass(frozen=True)
class Favour:
    """Thresholds of the tails on one cache: which rows are drawn how often, and what a pressure weighs."""

    threshold: np.ndarray  # (M,)
    weight: np.ndarray  # (M,) of pressures above it
    draw: np.ndarray = field(repr=False)  # (N,) relative frequency of each row

    @classmethod
    def of(cls, pressure: np.ndarray, rules: tuple[str, ...]) -> Favour:
        """pressure (N, M). A row above several thresholds is drawn as often as the largest factor says."""
        draw, threshold, weight = np.ones(len(pressure)), [], []
        for i, rule in enumerate(rules):
            tail = TAILS.get(rule, OTHER_TAIL)
            values = pressure[:, i][pressure[:, i] > 0] if tail.of_positive else pressure[:, i]
            level = float(np.percentile(values, tail.percentile)) if len(values) else np.inf
            draw = np.where(pressure[:, i] > level, np.maximum(draw, tail.draw), draw)
            threshold.append(level)
            weight.append(tail.weight)
        return cls(np.array(threshold), np.array(weight), draw)


def head_loss(
    predicted: Tensor, teacher: Tensor, threshold: Tensor, weight: Tensor, rank_weight: float
) -> tuple[Tensor, Tensor]:
    """(B, M) each -> regression and weighted ranking terms: weighted Smooth-L1, and pairs of one batch in order."""
    weights = torch.where(teacher > threshold, weight, torch.ones_like(weight))
    regression = (weights * smooth_l1_loss(predicted, teacher, beta=HUBER, reduction="none")).mean()
    return regression, rank_weight * ranking_loss(predicted, teacher)


def log_loss(predicted: Tensor, teacher: Tensor) -> Tensor:
    """(B, M) each: smooth L1 of the decades between both; below 1e-18 all is alike.

    Rules that are content press with 1e-3 or 1e-12. The regression sees no difference between these, but their order
    says how near a plan is to a violation.
    """
    return smooth_l1_loss(torch.log10(predicted + SILENCE), torch.log10(teacher + SILENCE))


def ranking_loss(predicted: Tensor, teacher: Tensor) -> Tensor:
    """Mean over pairs (j, k) and rules with A_j > A_k + 0.05 of softplus(-(a_j - a_k) / 0.2); 0 if there is none."""
    wanted = teacher.unsqueeze(1) - teacher.unsqueeze(0)  # (B, B, M)
    pairs = wanted > RANK_MARGIN
    gap = (predicted.unsqueeze(1) - predicted.unsqueeze(0))[pairs]
    return softplus(-gap / RANK_TEMPERATURE).mean() if gap.numel() else predicted.sum() * 0.0


class HeadTask:
    """The head on one cache; the planner is not here at all, so nothing of it can move."""

    memory = None

    def __init__(self, config: HeadTraining, cache: Cache, validation: Cache | None) -> None:
        self.config, self.cache, self.validation = config, cache, validation
        width = cache.read(np.zeros(1, dtype=np.int64))[0].ego_token.shape[-1]
        kind = "" if config.geometry == "none" else config.geometry
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(config.seed)
            self.model = AttributionHead(
                HeadConfig(width, cache.rules, config.heads, rule_set=cache.rule_set, geometry=kind)
            )
        if kind:
            self.model.standardise(cache.geometry(kind))
        self.favour = Favour.of(cache.pressure, cache.rules)
        self.threshold = torch.from_numpy(self.favour.threshold).float()
        self.weight = torch.from_numpy(self.favour.weight).float()
        self.odds = self.favour.draw / self.favour.draw.sum()

    def batch(self, step: int, rank: int, processes: int) -> tuple[HeadInputs, Tensor]:
        share = self.config.batch // processes
        draw = np.random.default_rng([self.config.seed, step, rank])
        rows = draw.choice(len(self.cache), size=share, p=self.odds)
        return self.cache.read(rows, self.model.config.geometry)

    def loss(
        self, model: AttributionHead, batch: tuple[HeadInputs, Tensor], generator: torch.Generator
    ) -> tuple[Tensor, dict[str, float]]:
        inputs, teacher = batch
        predicted = model(*inputs)
        regression, ranking = head_loss(predicted, teacher, self.threshold, self.weight, self.config.rank_weight)
        parts = {"regression": regression, "ranking": ranking}
        if self.config.log_weight:
            parts["logarithm"] = self.config.log_weight * log_loss(predicted, teacher)
        return torch.stack(list(parts.values())).sum(), {name: part.item() for name, part in parts.items()}

    def validate(self, model: AttributionHead, step: int) -> dict[str, float]:
        cache = self.validation or self.cache
        predicted, teacher = predict(model, cache), cache.pressure
        rho = spearman(predicted.T, teacher.T).tolist()
        return {
            "mae": float(np.abs(predicted - teacher).mean()),
            "top1": float((predicted.argmax(1) == teacher.argmax(1)).mean()),
            "macro_spearman": float(np.nanmean(rho)),
            **{f"spearman/{rule}": value for rule, value in zip(cache.rules, rho)},
        }


@torch.no_grad()
def predict(head: AttributionHead, cache: Cache) -> np.ndarray:
    """(N, M) what a head says about every sample of a cache."""
    rows = np.array_split(np.arange(len(cache)), max(1, len(cache) // 1024))
    return torch.cat([head(*cache.read(some, head.config.geometry)[0]) for some in rows]).numpy()


def fit_levels(predicted: np.ndarray, teacher: np.ndarray) -> tuple[Tensor, Tensor]:
    """(N, M) each -> start and slope (M, K) of `Levels`: the median of the teacher where the head says so much.

    Favoured draws and weights teach the head the order of high pressures and let it exaggerate all others. Seen on the
    samples as they are, an increasing line takes that back; the order within a rule stays.
    """
    start, slope = [], []
    for said, meant in zip(predicted.T.astype(np.float64), teacher.T):
        groups = np.array_split(np.argsort(said, kind="stable"), min(LEVEL_PIECES, len(said)))
        x = np.array([0.0, *(said[group].mean() for group in groups)])
        y = np.maximum.accumulate([0.0, *(np.median(meant[group]) for group in groups)])
        rise = np.diff(y) / np.maximum(np.diff(x), 1e-9)
        start.append(x[:-1])
        slope.append(np.maximum(rise, LEAST_SLOPE))
    return torch.tensor(np.array(start)).float(), torch.tensor(np.array(slope)).float()


def train_head(config: HeadTraining, folder: RunFolder, cache: Cache, validation: Cache | None = None) -> Path:
    """Train on the cache, fit the levels, write head.safetensors and head.json to FOLDER/head; returns that path."""
    task = HeadTask(config, cache, validation)
    fit(task, config.loop(len(cache)), folder)
    target = folder.path / "head"
    if is_main_process():
        silence = SILENCE if config.log_weight else 0.0
        head = task.model.with_levels(*fit_levels(predict(task.model, cache), cache.pressure), silence)
        save_head(head, target, {"run": folder.config, "cache": cache.made_of})
    return target
