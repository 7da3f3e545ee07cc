"""radp view: make HTML pages, and films, of the drives of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from radp.runs.errors import BadInput
from radp.runs.json_text import json_text


@dataclass(frozen=True)
class View:
    """Make HTML pages of the drives of a run, or of two runs side by side; they open without a server or a network.

    Pressures are those of the teacher where it was asked (simulate --attribution teacher), or those that the planner's
    head predicted; where the run only kept its plans, the teacher is asked now.

    Example:
        radp view runs/pdm --out pages
        radp view runs/pdm --other runs/idm --out pages
        radp view runs/pdm --token 3a7f --gif --out film
    """

    run: Positional[Path]
    """Folder of radp simulate."""
    other: Path | None = None
    """A second run of the same scenarios, shown beside the first in lock step."""
    out: Path | None = None
    """Folder for the pages; RUN/view if not given."""
    limit: int | None = None
    """At most this many scenarios, from the first."""
    token: tuple[str, ...] = ()
    """Only scenarios with these tokens."""
    gif: bool = False
    """Write a film of each scenario too, as GIF."""
    mp4: bool = False
    """Write a film of each scenario too, as MP4 (needs ffmpeg)."""
    json: bool = False
    """Print the paths as JSON."""

    def __call__(self) -> int:
        from radp.evaluation.closed_loop import Run
        from radp.report.viewer import write_films, write_site

        if self.limit is not None and self.limit < 1:
            raise BadInput(f"limit is {self.limit}, expected at least 1")
        runs = [Run.open(folder) for folder in (self.run, self.other) if folder is not None]
        suffixes = [suffix for suffix, wanted in ((".gif", self.gif), (".mp4", self.mp4)) if wanted]
        if suffixes:
            from radp.report.viewer.film import check_film

            for suffix in suffixes:
                check_film(suffix)
        site = write_site(runs, self.out or self.run / "view", self.limit, self.token)
        films = [str(path) for path in write_films(runs, site, suffixes)]
        if self.json:
            pages = {name: str(path) for name, path in site.pages.items()}
            print(json_text({"index": str(site.index), "pages": pages, "films": films}))
        else:
            print("\n".join([f"{len(site.pages)} scenarios: {site.index.resolve().as_uri()}", *films]))
        return 0
