"""radp train curves."""

from __future__ import annotations

from pathlib import Path


def curves(runs: tuple[Path, ...], out: Path) -> int:
    """Draw the loss of a training run, or of several that went on from one another.

    Example:
        radp train curves --runs runs/base --out loss.png

    Args:
        runs: Folders of `radp train base` or `radp train align`, in order.
        out: Picture to write (.png, .svg or .pdf).
    """
    from radp.report.learning_curves import draw_learning_curves

    draw_learning_curves(runs, out)
    print(out)
    return 0
