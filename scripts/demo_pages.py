"""Make what `radp demo --quick` shows: choose six scenarios by the written rule, drive them, and package the pages.

    python scripts/demo_pages.py --out runs/demo-choice [--scenarios sumo14-val] [--workers 2]

Drives the packaged planner and its base over the whole split first (what is there already is kept). To be run again
whenever packaged models change.
"""

from __future__ import annotations

import argparse
from dataclasses import asdict
from pathlib import Path

from radp.evaluation.closed_loop import run_simulation, summarise_run
from radp.evaluation.settings import Simulation
from radp.metrics.card import read_cards
from radp.report.demo import CHOICE, base_of, best_planner, run_demo
from radp.report.demo_choice import RULE, choose_demo
from radp.runs.files import write_json_atomically
from radp.scenario.parts import name_and_part
from radp.zoo import DEMO

MOST_BYTES = 4_000_000  # of all pages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--scenarios", default="sumo14-val")
    parser.add_argument("--workers", type=int, default=2)
    wanted = parser.parse_args()
    ours = best_planner()
    cards = []
    for planner in (ours, base_of(ours)):
        folder = wanted.out / f"{planner}-{wanted.scenarios}"
        summarise_run(
            run_simulation(Simulation(planner=planner, scenarios=wanted.scenarios), folder, 64, wanted.workers)
        )
        cards.append(read_cards(folder))
    chosen = choose_demo(*cards)
    split = name_and_part(wanted.scenarios)[0]
    rows = [asdict(one) for one in chosen]
    about = {"split": split, "chosen_from": wanted.scenarios, "planners": [ours, base_of(ours)]}
    write_json_atomically(DEMO / CHOICE, {**about, "rule": RULE, "scenarios": rows})
    made = run_demo(wanted.out / "demo", len(chosen), wanted.workers)
    for old in DEMO.glob("*.html"):
        old.unlink()
    pages = [made.site.index, *made.site.pages.values(), made.site.index.parent / "pages.json"]
    for page in pages:
        text = page.read_text().replace(str((wanted.out / "demo").absolute()), "demo")  # no paths of this machine
        (DEMO / page.name).write_text(text)
    size = sum((DEMO / page.name).stat().st_size for page in pages)
    print(f"{DEMO}: {len(pages)} files, {size / 1e6:.2f} MB")
    if size > MOST_BYTES:
        raise SystemExit(f"more than {MOST_BYTES / 1e6:.0f} MB")


if __name__ == "__main__":
    main()
