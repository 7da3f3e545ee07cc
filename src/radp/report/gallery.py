"""A page of pictures: one scenario of each kind, so that one look tells what a split holds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from radp.report.draw import draw_scenario
from radp.scenario import Scenario

COLUMNS = 5
REACH = 38.0  # m around the ego


def one_of_each_kind(scenarios: Iterable[Scenario], skip: int = 0) -> list[Scenario]:
    """Scenario number `skip` of each kind (its last one where there are fewer), sorted by kind."""
    found: dict[str, list[Scenario]] = {}
    for scenario in scenarios:
        of_kind = found.setdefault(scenario.kind, [])
        if len(of_kind) <= skip:
            of_kind.append(scenario)
    return [found[kind][-1] for kind in sorted(found)]


def draw_gallery(scenarios: Sequence[Scenario], path: Path, frame: int, reach: float = REACH) -> None:
    """Draw each scenario `frame` steps after its start (earlier where it is shorter) in a grid; writes a picture."""
    from matplotlib.figure import Figure

    rows = -(-len(scenarios) // COLUMNS)
    figure = Figure(figsize=(3.2 * COLUMNS, 3.4 * rows), layout="constrained")
    for i, scenario in enumerate(scenarios):
        axes = figure.add_subplot(rows, COLUMNS, i + 1)
        last = len(scenario.ego) - 1 - scenario.start
        draw_scenario(scenario, axes, min(frame, last), reach)
        axes.set_title(scenario.kind.replace("_", " "), fontsize=6)
    figure.savefig(path, dpi=90)
