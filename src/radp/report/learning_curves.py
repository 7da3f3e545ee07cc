"""The loss of a training run as a picture, for model cards."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from radp.runs.errors import BadInput, reading_file
from radp.runs.ledger import JsonLines

SMOOTH = 10  # logged steps in the running mean
COLORS = {"ego": "#d55e00", "neighbour": "#0072b2"}


def read_log(run: Path, part: str) -> dict[str, np.ndarray]:
    """Columns of one part ("train", "validation") of a run's log.jsonl: `step` and everything recorded at each."""
    path = run / "log.jsonl"
    if not path.is_file():
        raise BadInput(f"{run} holds no training run: log.jsonl is missing")
    with reading_file(path, "log of a training"):
        rows = [row for row in JsonLines(path, "part", "step").rows() if row["part"] == part]
        names = [name for name in (rows[0] if rows else {}) if name != "part"]
        columns = {name: np.array([row.get(name, np.nan) for row in rows], dtype=np.float64) for name in names}
        if rows and part == "train" and not set(COLORS) <= columns.keys():
            raise ValueError(f"it lacks the losses {' and '.join(COLORS)}")
        return columns


def draw_learning_curves(runs: Sequence[Path], path: Path) -> None:
    """Ego and neighbour loss of runs that followed each other, one after the other: lines train, dots validation."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(7.0, 3.4), layout="constrained")
    axes = figure.add_subplot()
    start = 0.0
    for i, run in enumerate(runs):
        train, held_out = read_log(run, "train"), read_log(run, "validation")
        if not train:
            raise BadInput(f"{run} has not logged a step yet")
        for name, color in COLORS.items():
            label = name if i == 0 else None
            axes.plot(start + train["step"], _running_mean(train[name]), color=color, lw=1.2, label=label)
            if name in held_out:
                held = f"{name}, held out" if i == 0 else None
                axes.plot(start + held_out["step"], held_out[name], "o", mfc="white", color=color, label=held)
        start += train["step"][-1]
        if i + 1 < len(runs):
            axes.axvline(start, color="#999999", lw=0.8, ls=":")
    axes.set(xlabel="step", ylabel="diffusion loss", yscale="log")
    axes.grid(True, which="both", lw=0.3, alpha=0.6)
    axes.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=110)


def _running_mean(values: np.ndarray) -> np.ndarray:
    """Mean of the last SMOOTH values, fewer at the beginning."""
    total = np.cumsum(np.concatenate(([0.0], values)))
    last = np.arange(1, len(values) + 1)
    first = np.maximum(0, last - SMOOTH)
    return (total[last] - total[first]) / (last - first)
