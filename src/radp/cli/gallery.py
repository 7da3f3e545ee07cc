"""radp data gallery."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class DataGallery:
    """Draw one scenario of each kind in one picture: road, route, lights, traffic, and the ego's way.

    Example:
        radp data gallery --scenarios sumo14-val --out sumo14-val.png
    """

    scenarios: str
    """Packaged split, store folder, or neutral JSON."""
    out: Path
    """Picture to write (.png, .svg or .pdf)."""
    skip: int = 0
    """Take this scenario of each kind, counted from 0."""
    frame: int = 30
    """Steps of 0.1 s after the start of the drive."""

    def __call__(self) -> int:
        from radp.report.draw import check_picture
        from radp.report.gallery import draw_gallery, one_of_each_kind
        from radp.scenario.splits import open_split

        check_picture(self.out)
        split = open_split(self.scenarios)
        draw_gallery(one_of_each_kind((split[i] for i in range(len(split))), self.skip), self.out, self.frame)
        print(self.out)
        return 0
