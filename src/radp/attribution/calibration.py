"""Calibration: what gradient of a rule is usual, so that pressures of different rules can be compared (Eq. 9)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from radp.rules import default_rules
from radp.rules.sets import PAPER
from radp.runs.errors import BadInput, reading_file
from radp.runs.files import write_json_atomically

PERCENTILE = 75.0
EPSILON = 1e-6


def calibration_file(rule_set: str = PAPER) -> str:
    """Name of the file that holds the levels of a rule set, beside a planner."""
    return "calibration.json" if rule_set == PAPER else f"calibration-{rule_set}.json"


def usual_level(gradients: np.ndarray, felt_alone: bool = False) -> float:
    """kappa > 0 of one rule from its RMS gradients (N,): the 75th percentile.

    A rule that is silent in more than three quarters of the samples has no positive one; then, and always with
    `felt_alone`, of those gradients that are felt at all (above epsilon), and 1 where none is.
    """
    level = 0.0 if felt_alone else np.percentile(gradients, PERCENTILE)
    felt = gradients[gradients > EPSILON]
    if level <= EPSILON:
        level = np.percentile(felt, PERCENTILE) if len(felt) else 1.0
    return float(level)


@dataclass(frozen=True)
class RuleScaling:
    """kappa (M,) in the order of some rules, and which of them were calibrated."""

    kappa: tuple[float, ...]
    known: tuple[bool, ...]

    def levels(self, norms: Tensor) -> Tensor:
        """RMS gradients (B, M) -> as multiples of the usual ones, g / (kappa + eps)."""
        kappa = torch.tensor(self.kappa, dtype=norms.dtype, device=norms.device)
        return norms / (kappa + EPSILON)

    def pressure(self, norms: Tensor) -> Tensor:
        """RMS gradients (B, M) -> A = log(1 + g / (kappa + eps))."""
        return torch.log1p(self.levels(norms))


@dataclass(frozen=True)
class Calibration:
    """kappa (M,) for the rules of one set by name: the 75th percentile of their RMS gradients on the training split.

    The paper's set counts silent moments as well, all others those in which a rule is felt.
    """

    rules: tuple[str, ...]
    kappa: tuple[float, ...]
    samples: int = 0
    about: dict[str, Any] = field(default_factory=dict)  # planner, data, seed
    rule_set: str = PAPER

    @classmethod
    def none(cls) -> Calibration:
        """No calibration: kappa = 1. Pressures are then not comparable between rules, and an attribution says so."""
        return cls((), ())

    @classmethod
    def fit(
        cls,
        gradients: Iterable[np.ndarray],
        rules: Sequence[str] | None = None,
        about: dict[str, Any] | None = None,
        rule_set: str = PAPER,
    ) -> Calibration:
        """RMS gradients in batches (B, M); `rules` are the names of the M, the paper's six if not given."""
        values = np.concatenate(list(gradients))
        kappa = [usual_level(column, felt_alone=rule_set != PAPER) for column in values.T]
        names = tuple(rules or (rule.name for rule in default_rules()))
        return cls(names, tuple(float(k) for k in kappa), len(values), about or {}, rule_set)

    @property
    def is_fitted(self) -> bool:
        return self.samples > 0

    def of_rules(self, names: Sequence[str]) -> RuleScaling:
        """kappa of these rules, found by name; a rule that was not calibrated has 1 and is not known."""
        found = dict(zip(self.rules, self.kappa))
        known = tuple(self.is_fitted and name in found for name in names)
        return RuleScaling(tuple(found[name] if k else 1.0 for name, k in zip(names, known)), known)

    def save(self, folder: Path | str) -> None:
        write_json_atomically(Path(folder) / calibration_file(self.rule_set), asdict(self))

    @classmethod
    def load(cls, folder: Path | str, rule_set: str = PAPER) -> Calibration:
        """From the file of a rule set in FOLDER; BadInput names the file and what is wrong."""
        path = Path(folder) / calibration_file(rule_set)
        with reading_file(path, "calibration"):
            data = json.loads(path.read_bytes())
            rules, kappa = tuple(map(str, data["rules"])), tuple(map(float, data["kappa"]))
            about, made_for = dict(data.get("about", {})), str(data.get("rule_set", PAPER))
            calibration = cls(rules, kappa, int(data["samples"]), about, made_for)
        if len(rules) != len(kappa) or not all(np.isfinite(kappa)) or min(kappa, default=0) < 0:
            raise BadInput(f"{path}: expected one finite scale of at least 0 for each of {len(rules)} rules")
        if made_for != rule_set:
            raise BadInput(f"{path} is for the rule set {made_for!r}, expected {rule_set!r}")
        return calibration
