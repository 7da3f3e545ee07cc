"""What can be made of several measures together: gradient-boosted trees, never judged on a log that they saw."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from radp.runs.errors import BadInput
from radp.statistics.groups import members
from radp.statistics.ranks import ranks

FOLDS = 5
STRIDE = 3  # frames between those that are learned from; neighbours tell little more
TREES, LEAVES, RATE, LEAST = 100, 15, 0.1, 40


def folds_of(logs: Sequence[str], seed: int = 0) -> np.ndarray:
    """(N,) fold of each drive, whole logs together; as many folds as logs if there are fewer than five."""
    log = members(logs, len(logs))
    count = int(log.max(initial=-1)) + 1
    return np.random.default_rng([seed, count]).permutation(count)[log] % min(FOLDS, max(count, 1))


def boosted_score(features: Sequence[np.ndarray], risk: np.ndarray, logs: Sequence[str], seed: int = 0) -> np.ndarray:
    """Features (N, T) each and the risk (N, T), NaN = none -> (N, T) score of drives by trees that other logs taught.

    The trees learn the rank of a frame's risk among those of its own drive, which is what the statistics ask for;
    drives of constant risk teach nothing. NaN where the risk is not known, or other logs have nothing to learn from.
    """
    try:
        from sklearn.ensemble import HistGradientBoostingRegressor
    except ImportError:
        raise BadInput("the gradient-boosted ceiling needs scikit-learn: pip install 'radp[evaluate]'") from None
    table, known, fold = np.stack(features, -1), ~np.isnan(risk), folds_of(logs, seed)
    place = ranks(np.where(known, risk, 0.0), known) / np.maximum(known.sum(1, keepdims=True), 1)
    varies = np.array([len(np.unique(row[~np.isnan(row)])) > 1 for row in risk], dtype=bool)
    out = np.full(risk.shape, np.nan)
    for k in range(int(fold.max(initial=-1)) + 1):
        learn, judge = known & (varies & (fold != k))[:, None], known & (fold == k)[:, None]
        learn = learn & (np.arange(risk.shape[1]) % STRIDE == 0)
        if not judge.any() or not learn.any():
            continue
        seen = ~np.isnan(table[learn]).all(0)  # a feature that nobody has teaches nothing, and trees refuse it
        if not seen.any():
            continue
        model = HistGradientBoostingRegressor(
            max_iter=TREES, max_leaf_nodes=LEAVES, learning_rate=RATE, min_samples_leaf=LEAST, early_stopping=False,
            random_state=seed,
        )  # fmt: skip
        out[judge] = model.fit(table[learn][:, seen], place[learn]).predict(table[judge][:, seen])
    return out
