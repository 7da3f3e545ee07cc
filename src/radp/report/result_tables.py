"""The result tables of the paper, ours beside theirs. Theirs: nuPlan. Directions are comparable, levels are not."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from radp.evaluation.alignment import Aligned
from radp.evaluation.fidelity import Fidelity
from radp.evaluation.planners import COLUMNS, Row
from radp.report import paper
from radp.report.alignment_tables import (
    CHANCE,
    CONTROL_COLUMNS,
    CONTROLLED,
    ELIGIBLE,
    TITLES,
    control_cells,
    events_note,
    judged,
)
from radp.report.table import Table, percent
from radp.sim.settings import Agents
from radp.statistics.estimate import LEGEND, NO_DIFFERENCE, NONE, Estimate, difference, interval

BESIDE = "Theirs: nuPlan, full-size models, as printed in the paper. Directions are comparable, levels are not."
PAIRED = "Differences are paired by scenario; 95% intervals over scenarios (10,000 resamples), x100."


def performance_table(rows: Sequence[Row], base: str, ours: str, scope: str) -> Table:
    """Reactive agents: base and ours on every split with their difference, and the paper's."""
    lines = []
    for split in dict.fromkeys(row.split for row in rows):
        mine = {row.planner: row for row in rows if row.split == split}
        for name in dict.fromkeys((base, ours)):
            if name in mine:
                lines.append((split, name, *(interval(mine[name].estimate(m), 1, 100) for m in COLUMNS)))
        if base in mine and ours in mine and base != ours:
            changes = (difference(mine[ours].difference(mine[base], m), 1, 100) for m in COLUMNS)
            lines.append((split, "ours: difference", *changes))
        lines += _their_performance(paper.their_split(split))
    notes = (scope, BESIDE, PAIRED, LEGEND)
    return Table("Closed-loop planning performance with reactive agents", _header("split"), tuple(lines), notes)


def _header(first: str) -> tuple[str, ...]:
    return (first, "planner", *COLUMNS.values())


def _their_performance(split: str | None) -> list[tuple[str, ...]]:
    if split is None:
        return []
    theirs = paper.PERFORMANCE[split]
    lines = [(f"nuPlan {split}", f"{name} (paper)", *_in_our_columns(values)) for name, values in theirs.items()]
    change = [b - a for a, b in zip(theirs["Diffusion Planner"], theirs["RADP"])]
    return [*lines, (f"nuPlan {split}", "paper: difference", *_in_our_columns(change, "+.2f"))]


def _in_our_columns(values: Sequence[float], form: str = ".2f") -> list[str]:
    """The paper's figures, in the order of `paper.METRICS`, under our columns; '-' where it has none."""
    by_title = dict(zip(paper.METRICS, values))
    return [format(by_title[title], form) if title in by_title else "-" for title in COLUMNS.values()]


def direction_table(rows: Sequence[Row], base: str, ours: str, scope: str) -> Table:
    """By split and metric: the paper's sign of RADP minus base, and what ours shows."""
    lines = []
    for split in dict.fromkeys(row.split for row in rows):
        mine, theirs = {row.planner: row for row in rows if row.split == split}, paper.their_split(split)
        if theirs is None or base == ours or not {base, ours} <= set(mine):
            continue
        a, b = (paper.PERFORMANCE[theirs][name] for name in ("Diffusion Planner", "RADP"))
        change = {title: y - x for title, x, y in zip(paper.METRICS, a, b)}
        both = {metric: title for metric, title in COLUMNS.items() if title in change}
        cells = [direction(change[title], mine[ours].difference(mine[base], m)) for m, title in both.items()]
        lines.append((f"{split} / {theirs}", *cells))
    return Table("Does ours go where the paper's goes?", ("split", *paper.METRICS), tuple(lines), (scope, BESIDE))


def direction(theirs: float, ours: Estimate) -> str:
    """up, up: same."""
    if np.isnan(ours.value):
        return NONE
    words = "up" if theirs > 0 else "down" if theirs < 0 else "equal"
    if not ours.excludes_zero:
        return f"paper {words}, ours {NO_DIFFERENCE}"
    mine = "up" if ours.value > 0 else "down"
    return f"paper {words}, ours {mine}: {'same' if words == mine else 'not the same'}"


def overview_table(rows: Sequence[Row], scope: str, agents: Agents = "reactive") -> Table:
    """Score of every planner on every split, and the paper's list."""
    splits = list(dict.fromkeys(row.split for row in rows))
    score = {(row.planner, row.split): interval(row.estimate("score"), 1, 100) for row in rows}
    lines = [
        ("sumo14" if split_is_sumo(splits) else "ours", name, *(score.get((name, split), NONE) for split in splits))
        for name in dict.fromkeys(row.planner for row in rows)
    ]
    order = list(paper.SPLITS.values())
    for name, values in (paper.OVERVIEW if agents == "reactive" else paper.overview_nonreactive()).items():
        theirs = [paper.their_split(split) for split in splits]
        lines.append(("nuPlan", f"{name} (paper)", *(f"{values[order.index(t)]:.2f}" if t else NONE for t in theirs)))
    return Table(
        f"Overview of planners, {'reactive' if agents == 'reactive' else 'non-reactive'} scores",
        ("benchmark", "planner", *splits),
        tuple(lines),
        (scope, BESIDE, LEGEND),
    )


def split_is_sumo(splits: Sequence[str]) -> bool:
    return all(split.startswith("sumo14") for split in splits)


def nonreactive_table(rows: Sequence[Row], base: str, ours: str, scope: str) -> Table:
    """Scores with agents that replay the log."""
    lines = []
    for split in dict.fromkeys(row.split for row in rows):
        mine, theirs = {row.planner: row for row in rows if row.split == split}, paper.their_split(split)
        scores = [interval(mine[n].estimate("score"), 1, 100) if n in mine else NONE for n in (base, ours)]
        change = difference(mine[ours].difference(mine[base], "score"), 1, 100) if {base, ours} <= set(mine) else NONE
        lines.append((split, *scores, change))
        if theirs is not None:
            a, b = paper.NONREACTIVE[theirs]
            lines.append((f"nuPlan {theirs} (paper)", f"{a:.2f}", f"{b:.2f}", f"{b - a:+.2f}"))
    header = ("split", f"{base} / Diffusion Planner", f"{ours} / RADP", "difference")
    return Table("Closed-loop scores with non-reactive agents", header, tuple(lines), (scope, BESIDE, PAIRED, LEGEND))


def ablation_table(rows: Sequence[Row], names: Mapping[str, str], ours: str, scope: str) -> Table:
    """names: setting of the paper -> our planner, '' where we have none packaged."""
    mine = {row.planner: row for row in rows}
    lines = []
    for setting, name in names.items():
        if name not in mine:
            lines.append((f"ours: {setting}", *("not packaged" for _ in COLUMNS)))
        else:
            lines.append((f"ours: {setting} ({name})", *(interval(mine[name].estimate(m), 1, 100) for m in COLUMNS)))
            if name != ours and ours in mine:
                change = (difference(mine[name].difference(mine[ours], m), 1, 100) for m in COLUMNS)
                lines.append((f"difference to {ours}", *change))
    for setting, values in paper.ABLATION.items():
        lines.append((f"nuPlan test14-hard (paper): {setting}", *_in_our_columns(values)))
    return Table(
        "Rule ablations, reactive agents", ("setting", *COLUMNS.values()), tuple(lines), (scope, BESIDE, PAIRED, LEGEND)
    )


def fidelity_tables(fidelities: Mapping[str, Fidelity], aligned: Mapping[str, Aligned], scope: str) -> list[Table]:
    """Head against teacher, and the mean alignment of both, with intervals, by split; then by rule."""
    lines, by_rule = [], []
    for split in aligned:
        one, macro = fidelities.get(split), aligned[split].macro
        agreement = (
            [NONE] * 3
            if one is None
            else [interval(one.macro_spearman), interval(one.macro_mae), interval(one.top1, 1, 100)]
        )
        rho = [interval(macro[s]["rho"]) if s in macro else NONE for s in ("teacher", "head")]
        lines.append((split, *agreement, *rho))
        theirs = paper.their_split(split)
        if theirs is not None:
            lines.append((f"nuPlan {theirs} (paper)", *paper.FIDELITY[theirs]))
        if one is not None:
            by_rule += [(split, r, interval(s), interval(m)) for r, s, m in zip(one.rules, one.spearman, one.mae)]
    header = ("split", "macro Spearman", "MAE", "Top-1 [%]", "teacher rho", "head rho")
    notes = [scope, BESIDE, "95% intervals over scenarios (10,000 resamples). rho: the main reading.", LEGEND]
    if not fidelities:
        notes.append("The planner has no attribution head, so there is no fidelity to measure.")
    tables = [Table("Head-teacher fidelity and future-risk alignment", header, tuple(lines), tuple(notes))]
    if by_rule:
        tables.append(Table("Fidelity by rule", ("split", "rule", "Spearman", "MAE"), tuple(by_rule), (scope, LEGEND)))
    return tables


def temporal_table(aligned: Aligned, split: str, scope: str) -> Table:
    """Every endpoint with intervals, and the paper's val14 beneath each; `aligned` is of the paper's reading."""
    lines = []
    for e in aligned.seven:
        for k, source in enumerate(("teacher", "head")):
            if source in aligned.sources:
                one = aligned.row(e.name, source)
                lines.append(
                    (e.channel, TITLES[e.name], f"ours, {source}", percent(one.positive_rate),
                     interval(one.auprc, count=True), interval(one.chance), interval(one.lift),
                     judged(one.rho, one.less_clock, one.less_other, count=True), interval(one.shuffled),
                     *control_cells(aligned, e.name, source))
                )  # fmt: skip
            rate, auprc, lift, rho, shuffled = paper.ALIGNMENT[e.name]
            lines.append(
                (e.channel, TITLES[e.name], f"paper, {source}", rate, auprc[k], "-", lift[k], rho[k], shuffled[k],
                 *("-" for _ in CONTROL_COLUMNS))
            )  # fmt: skip
    header = (
        "channel", "risk endpoint", "source", "positive rate", "AUPRC", "AUPRC of chance", "Lift@10%", "temporal rho",
        "shuffled rho", *CONTROL_COLUMNS,
    )  # fmt: skip
    title = f"Temporal risk alignment, ours {split}, paper nuPlan val14"
    notes = (scope, BESIDE, events_note(aligned), ELIGIBLE, CONTROLLED, CHANCE, LEGEND)
    return Table(title, header, tuple(lines), notes)


def latency_table(figures: Mapping[str, Any], scope: str) -> Table:
    """Mean and deviation; theirs on an RTX 4080, ours on the processor of this machine."""
    plan, spread = figures["planner_ms"], figures["planner_ms_deviation"]
    teacher, head = figures["teacher_cached_ms"], figures["head_cached_ms"]

    def extra(name: str) -> tuple[str, str]:
        share, deviation = figures[f"{name}_overhead"], figures[f"{name}_overhead_deviation"]
        return f"{plan * (1 + share):.2f}", f"{100 * share:+.1f}% ± {100 * deviation:.1f}%"

    ours = {
        "Planner only": (f"{plan:.2f} ± {spread:.2f}", "-"),
        "Planner + Head": extra("head"),
        "Planner + exact Teacher": extra("teacher"),
        "Planner + gradient guidance": extra("guidance"),
        "Exact Teacher on cached states": (f"{teacher:.2f} ± {figures['teacher_cached_ms_deviation']:.2f}", "1.00x"),
        "Head on cached states": (
            f"{head:.2f} ± {figures['head_cached_ms_deviation']:.2f}", f"{teacher / head:.2f}x faster",
        ),
    }  # fmt: skip
    lines = tuple((method, *ours[method], *theirs) for method, theirs in paper.LATENCY.items())
    header = ("method", "ours [ms]", "ours, overhead", "paper [ms], RTX 4080", "paper, overhead")
    notes = (
        f"Ours: {figures['planner']}, batch 1, {figures['threads']} thread(s) of this machine's processor, load "
        f"average {figures['load_average']}; head: {figures['head']}; {figures['cached_states']} cached states.",
        BESIDE,
        scope,
    )
    return Table("Inference latency, mean ± standard deviation", header, lines, notes)
