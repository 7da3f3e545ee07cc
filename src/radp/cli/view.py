"""radp view: make HTML pages, and films, of the drives of a run."""

from __future__ import annotations

import json as json_module
from pathlib import Path
from typing import Annotated

import tyro

from radp.runs.errors import BadInput


def view(
    run: Annotated[Path, tyro.conf.Positional],
    other: Path | None = None,
    out: Path | None = None,
    limit: int | None = None,
    token: tuple[str, ...] = (),
    gif: bool = False,
    mp4: bool = False,
    json: bool = False,
) -> int:
    """Make HTML pages of the drives of a run, or of two runs side by side; they open without a server or a network.

    Pressures are those of the teacher where it was asked (simulate --attribution teacher), or those that the planner's
    head told; where the run only kept its plans, the teacher is asked now.

    Example:
        radp view runs/pdm --out pages
        radp view runs/pdm --other runs/idm --out pages
        radp view runs/pdm --token 3a7f --gif --out film

    Args:
        run: Folder of radp simulate.
        other: A second run of the same scenarios, shown beside the first in lock step.
        out: Folder for the pages; RUN/view if not given.
        limit: At most this many scenarios, from the first.
        token: Only scenarios with these tokens.
        gif: Write a film of each scenario too, as GIF.
        mp4: Write a film of each scenario too, as MP4 (needs ffmpeg).
        json: Print the paths as JSON.
    """
    from radp.evaluation.closed_loop import Run
    from radp.report.viewer import write_films, write_site

    if limit is not None and limit < 1:
        raise BadInput(f"limit is {limit}, expected at least 1")
    runs = [Run.open(folder) for folder in (run, other) if folder is not None]
    suffixes = [suffix for suffix, wanted in ((".gif", gif), (".mp4", mp4)) if wanted]
    if suffixes:
        from radp.report.viewer.film import check_film

        for suffix in suffixes:
            check_film(suffix)
    site = write_site(runs, out or run / "view", limit, token)
    films = [str(path) for path in write_films(runs, site, suffixes)]
    if json:
        pages = {name: str(path) for name, path in site.pages.items()}
        print(json_module.dumps({"index": str(site.index), "pages": pages, "films": films}, indent=1))
    else:
        print("\n".join([f"{len(site.pages)} scenarios: {site.index.resolve().as_uri()}", *films]))
    return 0
