"""radp train curves."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class TrainCurves:
    """Draw the loss of a training run, or of several that went on from one another.

    Example:
        radp train curves --runs runs/base --out loss.png
    """

    runs: tuple[Path, ...]
    """Folders of `radp train base` or `radp train align`, in order."""
    out: Path
    """Picture to write (.png, .svg or .pdf)."""

    def __call__(self) -> int:
        from radp.report.draw import check_picture
        from radp.report.learning_curves import draw_learning_curves

        check_picture(self.out)
        draw_learning_curves(self.runs, self.out)
        print(self.out)
        return 0
