"""Make what `radp demo --quick` shows: choose six scenarios by the written rule, drive them, and package the pages.

    python scripts/demo_pages.py --out runs/demo-choice [--scenarios sumo14-val] [--workers 2]
    python scripts/demo_pages.py --renew

Drives the packaged planner and its base over the whole split first (what is there already is kept). To be run again
whenever packaged models change. With --renew nothing is driven: the packaged pages keep their data and get the scripts
and styles of today.
"""

from __future__ import annotations

import argparse
import html
import json
import re
from dataclasses import asdict
from pathlib import Path

from radp.evaluation.closed_loop import run_simulation, summarise_run
from radp.evaluation.settings import Simulation
from radp.metrics.card import read_cards
from radp.planners.learned import base_of
from radp.report.demo import BASELINE, CHOICE, best_planner, run_demo
from radp.report.demo_choice import RULE, choose_demo
from radp.report.viewer import scenario_page, site
from radp.report.viewer.page import render
from radp.runs.files import write_json_atomically
from radp.scenario.parts import name_and_part
from radp.zoo import DEMO

MOST_BYTES = 4_000_000  # of all pages
TITLE, DATA = r"<title>(.*?)</title>", r'<script type="application/json" id="data">(.*?)</script>'


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--renew", action="store_true")
    parser.add_argument("--scenarios", default="sumo14-val")
    parser.add_argument("--workers", type=int, default=2)
    wanted = parser.parse_args()
    if wanted.renew:
        renew()
    elif wanted.out is None:
        parser.error("--out or --renew is needed")
    else:
        make(wanted)
    check_size()


def renew() -> None:
    """Scripts and styles of today around the data that the pages hold."""
    for page in sorted(DEMO.glob("*.html")):
        text = page.read_text()
        title, data = (re.search(pattern, text, re.S) for pattern in (TITLE, DATA))
        if title is None or data is None:
            raise SystemExit(f"{page} is not a page of radp")
        kind = site if page.name == "index.html" else scenario_page
        template = "index.html" if kind is site else "scenario.html"
        page.write_text(render(template, html.unescape(title[1]), json.loads(data[1]), kind.STYLES, kind.SCRIPTS))


def make(wanted: argparse.Namespace) -> None:
    """Choose, drive, and package."""
    ours = best_planner()
    base = base_of(ours) or BASELINE
    cards = []
    for planner in (ours, base):
        folder = wanted.out / f"{planner}-{wanted.scenarios}"
        summarise_run(
            run_simulation(Simulation(planner=planner, scenarios=wanted.scenarios), folder, 64, wanted.workers)
        )
        cards.append(read_cards(folder))
    chosen = choose_demo(*cards)
    split = name_and_part(wanted.scenarios)[0]
    rows = [asdict(one) for one in chosen]
    about = {"split": split, "chosen_from": wanted.scenarios, "planners": [ours, base]}
    write_json_atomically(DEMO / CHOICE, {**about, "rule": RULE, "scenarios": rows})
    made = run_demo(wanted.out / "demo", len(chosen), wanted.workers)
    for old in DEMO.glob("*.html"):
        old.unlink()
    pages = [made.site.index, *made.site.pages.values(), made.site.index.parent / "pages.json"]
    for page in pages:
        text = page.read_text().replace(str((wanted.out / "demo").absolute()), "demo")  # no paths of this machine
        (DEMO / page.name).write_text(text)


def check_size() -> None:
    files = [file for file in DEMO.iterdir() if file.suffix in (".html", ".json")]
    size = sum(file.stat().st_size for file in files)
    print(f"{DEMO}: {len(files)} files, {size / 1e6:.2f} MB")
    if size > MOST_BYTES:
        raise SystemExit(f"more than {MOST_BYTES / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
