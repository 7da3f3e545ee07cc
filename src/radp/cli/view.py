"""radp view: make HTML pages, and films, of the drives of a run."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tyro.conf import Positional

from radp.runs.errors import BadInput
from radp.runs.json_text import json_text


@dataclass(frozen=True)
class ViewDrives:
    """Make HTML pages of the drives of a run, or of two runs side by side; they open without a server or a network.

    Where the run kept its plans (simulate --keep-plans or --attribution teacher), the teacher judges them now, by the
    rules of v2 unless the run names others; without plans the pages have no pressures.

    Example:
        radp view runs/pdm --out pages
        radp view runs/pdm --other runs/idm --out pages
        radp view runs/pdm --token 3a7f --gif --out film
        radp view runs/pdm --rule-set road-v2 --out pages
        radp view runs/default --weighted runs/careful runs/bold --out pages
        radp view drive.msgpack.xz --maps nuplan/maps --out pages
    """

    run: Positional[Path]
    """Folder of radp simulate; or a SimulationLog file of nuplan-devkit or a folder of them, which are written as a run
    into OUT/run first."""
    maps: Path | None = None
    """Folder of nuPlan's maps, for SimulationLog files; without it their pages show no road."""
    other: Path | None = None
    """A second run of the same scenarios, shown beside the first in lock step."""
    weighted: tuple[Path, ...] = ()
    """Further runs of the same planner at other weights of rules: pages then have a slider for each weight."""
    rule_set: str = ""
    """Rules that judge the plans now: v2, road-v2 (eight more), paper; that of the run, or v2, if not given."""
    out: Path | None = None
    """Folder for the pages; RUN/view if not given."""
    limit: int | None = None
    """At most this many scenarios: the first of each kind, then the second of each, and so on."""
    token: tuple[str, ...] = ()
    """Only scenarios with these tokens."""
    gif: bool = False
    """Write a film of each scenario too, as GIF."""
    mp4: bool = False
    """Write a film of each scenario too, as MP4 (needs ffmpeg)."""
    verify: bool = True
    """Look for what would have avoided incidents of at least 5 points, by driving it; some seconds for each."""
    json: bool = False
    """Print the paths as JSON."""

    def __call__(self) -> int:
        from radp.evaluation.logged_runs import open_drives
        from radp.report.viewer import write_films, write_site
        from radp.report.viewer.site import WORTH

        if self.limit is not None and self.limit < 1:
            raise BadInput(f"limit is {self.limit}, expected at least 1")
        if self.other is not None and self.weighted:
            raise BadInput(
                "other and weighted do not go together: two planners side by side, or one at several weights"
            )
        out = self.out or (self.run.parent if self.run.is_file() else self.run) / "view"
        runs = [open_drives(path, self.maps, out) for path in (self.run, self.other, *self.weighted) if path]
        suffixes = [suffix for suffix, wanted in ((".gif", self.gif), (".mp4", self.mp4)) if wanted]
        if suffixes:
            from radp.report.viewer.film import check_film

            for suffix in suffixes:
                check_film(suffix)
        if self.rule_set:
            from radp.rules import rule_set

            rule_set(self.rule_set)  # BadInput if there is none of this name
        verify, weighted = WORTH if self.verify else None, bool(self.weighted)
        site = write_site(runs, out, self.limit, self.token, verify, rules=self.rule_set, weighted=weighted)
        films = [str(path) for path in write_films(runs[:1] if weighted else runs, site, suffixes, self.rule_set)]
        if self.json:
            pages = {name: str(path) for name, path in site.pages.items()}
            print(json_text({"index": str(site.index), "pages": pages, "films": films}))
        else:
            print("\n".join([f"{len(site.pages)} scenarios: {site.index.resolve().as_uri()}", *films]))
        return 0
