"""radp data gallery."""

from __future__ import annotations

from pathlib import Path


def gallery(scenarios: str, out: Path, skip: int = 0, frame: int = 30) -> int:
    """Draw one scenario of each kind in one picture: road, route, lights, traffic, and the ego's way.

    Example:
        radp data gallery --scenarios sumo14-val --out sumo14-val.png

    Args:
        scenarios: Packaged split, store folder, or neutral JSON.
        out: Picture to write (.png, .svg or .pdf).
        skip: Take this scenario of each kind, counted from 0.
        frame: Steps of 0.1 s after the start of the drive.
    """
    from radp.report.gallery import draw_gallery, one_of_each_kind
    from radp.scenario.splits import open_split

    split = open_split(scenarios)
    draw_gallery(one_of_each_kind((split[i] for i in range(len(split))), skip), out, frame)
    print(out)
    return 0
