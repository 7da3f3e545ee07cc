"""The summary of many scored drives: means with bootstrap intervals, overall and per kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from radp.metrics.score import METRICS
from radp.version import __version__

RESAMPLES = 10_000
LEVEL = 0.95
CHUNK = 256  # resamples drawn at a time, which bounds the memory


def summarise(cards: Sequence[dict[str, Any]], seed: int = 0) -> dict[str, Any]:
    """JSON-ready summary of score cards. A failed drive scores 0 and has no sub-scores.

    Means are over drives, so kinds weigh by their number, as in nuPlan. Sub-scores leave out drives without a value and
    say how many had one. Intervals: 95% percentile bootstrap over drives. `seed` is the seed of the run.
    """
    kinds = sorted({card["kind"] for card in cards})
    return {
        "version": __version__,
        "seed": seed,
        **_group(cards),
        "kinds": {kind: _group([card for card in cards if card["kind"] == kind]) for kind in kinds},
        "failures": [{"token": c["token"], "reason": c["failure"]} for c in cards if c["failure"] is not None],
        "bootstrap": {"resamples": RESAMPLES, "level": LEVEL, "over": "scenarios"},
    }


def _group(cards: Sequence[dict[str, Any]]) -> dict[str, Any]:
    values = np.array([[card["score"], *(_value(card, name) for name in METRICS)] for card in cards], dtype=np.float64)
    low, high = bootstrap_interval(values)
    columns = {
        name: _figures(values[:, i], low[i], high[i]) if len(values) else _figures(values, np.nan, np.nan)
        for i, name in enumerate(("score", *METRICS))
    }
    score = columns.pop("score")
    failed = sum(card["failure"] is not None for card in cards)
    lengths = [card["seconds"] for card in cards if card.get("seconds") is not None]
    seconds = {"least": min(lengths), "most": max(lengths)} if lengths else None
    return {"scenarios": len(cards), "failed": failed, "seconds": seconds, "score": score, "metrics": columns}


def _value(card: dict[str, Any], name: str) -> float:
    value = card["metrics"][name]["value"]
    return np.nan if value is None else value


def _figures(values: np.ndarray, low: float, high: float) -> dict[str, Any]:
    known = values[~np.isnan(values)]
    if len(known) == 0:
        return {"mean": None, "low": None, "high": None, "count": 0}
    return {"mean": float(known.mean()), "low": float(low), "high": float(high), "count": len(known)}


def bootstrap_interval(
    values: np.ndarray, resamples: int = RESAMPLES, level: float = LEVEL, seed: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """values (N, K), NaN = missing -> low (K,), high (K,): percentile interval of the mean when rows are drawn anew.

    The draws depend on the seed and on N alone. A resample without any value of a column is left out for that column.
    """
    if len(values) == 0:
        return np.full(0, np.nan), np.full(0, np.nan)
    random = np.random.default_rng(seed)
    known = ~np.isnan(values)
    filled = np.where(known, values, 0.0)
    means = np.empty((resamples, values.shape[1]))
    share = np.full(len(values), 1.0 / len(values))
    for first in range(0, resamples, CHUNK):
        size = min(CHUNK, resamples - first)
        times = random.multinomial(len(values), share, size=size).astype(np.float64)  # how often each row is drawn
        with np.errstate(invalid="ignore", divide="ignore"):
            means[first : first + size] = (times @ filled) / (times @ known)
    tail = (1.0 - level) / 2.0
    low, high = np.full(values.shape[1], np.nan), np.full(values.shape[1], np.nan)
    some = known.any(axis=0)
    if some.any():
        low[some], high[some] = np.nanpercentile(means[:, some], [100.0 * tail, 100.0 * (1.0 - tail)], axis=0)
    return low, high


def summary_text(summary: dict[str, Any]) -> str:
    """The summary for people, times 100 as published numbers are."""
    long = summary["seconds"]
    length = f" {long['least']:.1f} to {long['most']:.1f} s long;" if long else ""
    lines = [f"{summary['scenarios']} drives, {summary['failed']} failed;{length} 95% intervals over scenarios; x100"]
    lines.append(f"  {'score':<36} {_interval_text(summary['score'])}")
    lines += [f"  {name:<36} {_interval_text(figures)}" for name, figures in summary["metrics"].items()]
    if len(summary["kinds"]) > 1:
        lines.append("score by kind")
        lines += [
            f"  {kind:<56} {_interval_text(group['score'])}  n {group['scenarios']}"
            for kind, group in summary["kinds"].items()
        ]
    lines += [f"failed: {failure['token']}: {failure['reason']}" for failure in summary["failures"]]
    return "\n".join(lines)


def _interval_text(figures: dict[str, Any]) -> str:
    if figures["mean"] is None:
        return "   n/a"
    return f"{100 * figures['mean']:6.2f}  [{100 * figures['low']:6.2f}, {100 * figures['high']:6.2f}]"
