"""The evidence on real logs: counts of each store and a gallery of its scenarios, as a page with pictures.

    python scripts/real_logs.py --stores runs/waymo runs/nuscenes --out docs/real-logs

Pictures show real data: whether they may be published depends on the licence of each data set.
"""

from __future__ import annotations

import json
from pathlib import Path

import matplotlib
import numpy as np
import tyro

from radp.report.draw import draw_scenario
from radp.scenario.store import ScenarioStore

matplotlib.use("Agg")
COLUMNS = ("store", "logs", "scenarios", "maps", "seconds", "kinds", "rebuilt", "unknown", "failed")


def main(stores: tuple[Path, ...], out: Path, pictures: int = 6, reach: float = 60.0) -> None:
    """Write OUT/sources.md and one picture per store.

    Args:
        stores: Stores that `radp data convert` made.
        out: Folder of the page.
        pictures: Scenarios in each gallery, evenly taken from the store.
        reach: Metres around the ego.
    """
    out.mkdir(parents=True, exist_ok=True)
    lines = ["# Converted logs", "", f"| {' | '.join(COLUMNS)} |", "|" + "---|" * len(COLUMNS)]
    for path in stores:
        lines.append(f"| {' | '.join(row(path))} |")
    for path in stores:
        gallery(ScenarioStore.open(path), out / f"{path.name}.png", pictures, reach)
        lines += ["", f"## {path.name}", "", f"![scenarios of {path.name}]({path.name}.png)"]
    (out / "sources.md").write_text("\n".join(lines) + "\n")


def row(path: Path) -> list[str]:
    """What the card of a store says, for a table."""
    card = json.loads((path / "card.json").read_text())
    frames = [int(count) for count in card["frames"]]
    seconds = f"{(min(frames) - 1) / 10:.1f} to {(max(frames) - 1) / 10:.1f}" if frames else ""
    words = [", ".join(f"{word} {count}" for word, count in card[name].items()) for name in COLUMNS[5:8]]
    return [
        path.name,
        str(card["logs"]),
        str(card["scenarios"]),
        str(card["maps"]),
        seconds,
        *words,
        str(len(card["failed"])),
    ]


def gallery(store: ScenarioStore, file: Path, pictures: int, reach: float) -> None:
    """Scenarios at their first moment; three in a row."""
    import matplotlib.pyplot as plt

    chosen = np.unique(np.linspace(0, len(store) - 1, min(pictures, len(store))).round().astype(int))
    rows = -(-len(chosen) // 3)
    figure, axes = plt.subplots(rows, 3, figsize=(12, 4.2 * rows), squeeze=False)
    for ax in axes.flat[len(chosen) :]:
        ax.axis("off")
    for ax, index in zip(axes.flat, chosen):
        draw_scenario(store[int(index)], ax, 0, reach)
    figure.tight_layout()
    figure.savefig(file, dpi=80)
    plt.close(figure)


if __name__ == "__main__":
    tyro.cli(main)
