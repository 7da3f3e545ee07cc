"""Faithfulness as one table: every family of explanation, how well it points, and what it costs."""

from __future__ import annotations

from typing import Any

from radp.evaluation.explanations import IG_STEPS, PERMUTATIONS, SHAP_SAMPLES
from radp.evaluation.faithfulness import MATTERS, MOST, STATISTICS, SUBSETS, Faithfulness
from radp.report.table import Table, percent
from radp.statistics.estimate import LEGEND, difference, interval

HEADER = (
    "family", "Top-1", "rho with the truth", "deletion", "insertion", "infidelity", "pressure minus it, deletion",
    "pressure minus it, rho", "says nothing", "rho with itself on random weights", "processor [ms]",
)  # fmt: skip


def faithfulness_table(found: Faithfulness, where: str) -> Table:
    rows = []
    for one in found.families:
        less = [difference(one.less[s]) if one.less else "-" for s in ("deletion", "rho")]
        cells = [interval(one.figures[s]) for s in ("top1", "rho", "deletion", "insertion", "infidelity")]
        rows.append((one.name, *cells, *less, percent(one.silent), interval(one.same), f"{one.milliseconds:.0f}"))
    cells = [interval(found.shuffled[s]) for s in ("top1", "rho", "deletion", "insertion", "infidelity")]
    rows.append(("pressure, shuffled rules (control)", *cells, "-", "-", "-", "-", "-"))
    notes = (
        f"Truth: one of the {MOST} nearest road users is taken away and the plan is made again with the same noise; "
        "how far it moves, on average over its steps, is what that road user does to it. "
        f"{found.moments} moments of {found.logs} logs; in {found.moved} of them the plan moves by at least "
        f"{MATTERS:g} m without all of them, and only those have curves.",
        "Deletion: mean share of the whole move when the first 1, 2, ... of a family's order are taken away; "
        "insertion: mean share won back when only they are there; higher is better. Infidelity: squared error in "
        f"foretelling {SUBSETS} random removals, at the best scale; 0 is best, 1 is calling all alike.",
        "Occlusion asks nearly the question of the truth, so it is the most that can be had, not a rival. Pressure "
        "says who presses by the collision rule, not who moves the plan: it says nothing where that rule is content.",
        "Sanity: a family that explains the model must change when the values of every weight matrix are put in random "
        "order (rho near 0); nearest and TTC cannot. Under shuffled rules, each road user has the forecast of another.",
        f"Captum: {IG_STEPS} steps of integrated gradients, {SHAP_SAMPLES} samples of gradient SHAP, {PERMUTATIONS} "
        "orders of Shapley sampling, road users as groups. Processor time is for one moment, the plan itself included "
        "where a family needs it.",
        LEGEND,
    )
    return Table(f"Faithfulness of explanations, {where}", HEADER, tuple(rows), notes)


def faithfulness_json(found: Faithfulness) -> dict[str, Any]:
    return {
        "planner": found.planner,
        "moments": found.moments,
        "moved": found.moved,
        "logs": found.logs,
        "families": {
            one.name: {
                **{s: one.figures[s].to_json() for s in STATISTICS},
                "pressure_minus_it": {s: e.to_json() for s, e in one.less.items()},
                "says_nothing": one.silent,
                "rho_with_random_weights": one.same.to_json(),
                "processor_ms": one.milliseconds,
            }
            for one in found.families
        },
        "pressure_shuffled_rules": {s: e.to_json() for s, e in found.shuffled.items()},
    }
