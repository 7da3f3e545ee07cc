"""Displacement errors and a picture of planners on real nuPlan samples (.npz of DTPP).

    python scripts/real_samples.py SAMPLES --planners diffusion-planner-mini radp-mini --out runs/samples

Three samples are an illustration, no measurement: they say whether plans look sane on real roads, not who is better.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from radp import load_planner
from radp.evaluation.open_loop import HORIZONS, displacements
from radp.report.draw import draw_scenario
from radp.sources.nuplan.samples import read_sample

COLORS = ("#b03060", "#2060b0", "#208040", "#805010")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("samples", type=Path, help="folder of .npz samples")
    parser.add_argument("--planners", nargs="+", default=["diffusion-planner-mini", "radp-mini"])
    parser.add_argument("--out", type=Path, default=Path("runs/real-samples"))
    options = parser.parse_args()
    scenarios = [read_sample(path) for path in sorted(options.samples.glob("*.npz"))]
    if not scenarios:
        parser.error(f"{options.samples} holds no .npz files")
    options.out.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, len(scenarios), figsize=(5 * len(scenarios), 5), squeeze=False)
    for scenario, ax in zip(scenarios, axes[0]):
        draw_scenario(scenario, ax, 0)
    print(f"{len(scenarios)} samples; mean distance to the expert (ADE) and distance at the end (FDE), m")
    print("| planner | sample | " + " | ".join(f"ADE {s} s | FDE {s} s" for s in HORIZONS) + " |")
    print("|---|---|" + "---|" * 2 * len(HORIZONS))
    for name, color in zip(options.planners, COLORS):
        found = displacements(load_planner(name), scenarios)
        rows = [(one.token, [(one.average(s), one.final(s)) for s in HORIZONS]) for one in found]
        rows.append(("mean", np.mean([row for _, row in rows], axis=0).tolist()))
        for token, row in rows:
            print(f"| {name} | {token} | " + " | ".join(f"{a:.2f} | {f:.2f}" for a, f in row) + " |")
        for one, ax in zip(found, axes[0]):
            ax.plot(*one.plan.T, color=color, lw=2, zorder=7, label=name)
    axes[0][0].legend(fontsize=7, loc="lower left")
    figure.savefig(options.out / "samples.png", dpi=120, bbox_inches="tight")
    print(f"drawn in {options.out / 'samples.png'}; {len(scenarios)} samples are an illustration, no measurement")


if __name__ == "__main__":
    main()
