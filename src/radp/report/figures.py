"""The figures of the paper from our drives: case study, matched frames, collision-avoidance strips.

Scenarios are chosen by rule, never by hand: the largest improvement of the score and, for honesty, the largest
regression. Every figure is written as SVG and PNG.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from radp.evaluation.drives import inverse_ttc, pressures_of
from radp.evaluation.risk import severities
from radp.metrics.drive import box_centers
from radp.metrics.score import ScenarioScore, evaluate
from radp.report.document import Picture
from radp.report.signals import front_clearance
from radp.report.top_view import BLUE, DARK, EGO, INK, PAST, PLAN, Viewport, draw_moment
from radp.report.viewer.road import crop_road
from radp.report.viewer.words import kind_words
from radp.scenario import Scenario
from radp.sim.rollout import Rollout

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

DPI = 160
STRIP_SECONDS = (3, 2, 1, 0)  # before contact
APART = 20  # samples between the two moments that are matched
LOOKS = {  # rule -> colour, dashes: distinct without colour, too
    "collision": ("#d55e00", "-"),
    "lane": ("#0072b2", (0, (5, 1.5))),
    "speed": ("#8a6d00", (0, (1, 1))),
    "kinematics": ("#cc79a7", (0, (4, 1, 1, 1))),
    "comfort": ("#009e73", (0, (2, 1))),
    "goal": ("#333333", (0, (6, 1, 1, 1, 1, 1))),
}


@dataclass(frozen=True)
class Pair:
    """The same scenario with two planners."""

    base: Rollout
    ours: Rollout
    base_score: ScenarioScore
    ours_score: ScenarioScore

    @classmethod
    def of(cls, base: Rollout, ours: Rollout) -> Pair:
        return cls(base, ours, evaluate(base), evaluate(ours))

    @property
    def scenario(self) -> Scenario:
        return self.base.scenario

    @property
    def gain(self) -> float:
        return self.ours_score.score - self.base_score.score

    def turned(self) -> Pair:
        return Pair(self.ours, self.base, self.ours_score, self.base_score)

    def words(self) -> str:
        a, b = 100 * self.base_score.score, 100 * self.ours_score.score
        scores = f"{self.base.planner} {a:.1f}, {self.ours.planner} {b:.1f}"
        return f"{kind_words(self.scenario.kind)}, {self.scenario.token}: {scores}"


def save(figure: Figure, folder: Path, name: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for suffix in ("svg", "png"):
        figure.savefig(
            folder / f"{name}.{suffix}",
            dpi=DPI,
            facecolor="white",
            metadata={"Date": None} if suffix == "svg" else None,
        )


def case_study(pair: Pair, folder: Path, name: str, why: str, calibrated: bool = True) -> Picture | None:
    """Pressures of ours over time; clearance and TTC to the front; signed clearance to the border of the corridor."""
    from matplotlib.figure import Figure

    pressures = pressures_of(pair.ours)
    source = "head" if "head" in pressures else "teacher"
    if source not in pressures or pair.ours_score.details is None:
        return None
    figure = Figure(figsize=(10, 4.6), layout="constrained")
    grid = figure.add_gridspec(2, 2, width_ratios=(1.75, 1))
    left, upper, lower = (figure.add_subplot(place) for place in (grid[:, 0], grid[0, 1], grid[1, 1]))
    _pressures(left, pair.ours, pressures[source], source, calibrated)
    _front(upper, pair.ours, pair.ours_score)
    _corridor(lower, pair.ours, pair.ours_score)
    save(figure, folder, name)
    words = (
        f"{pair.words()}. {why} (a) pressures of the {source} beside {pair.ours.planner}; (b) clearance to the nearest "
        "object ahead, and constant-velocity TTC (none within 8 s: no line); (c) signed clearance of the ego's body to "
        "the border of the route, negative outside."
    )
    return Picture(name, f"Case study: {why.lower().rstrip('.')}", words)


def _seconds(rollout: Rollout, count: int) -> np.ndarray:
    return (rollout.time_us[:count] - rollout.time_us[0]) * 1e-6


def _plain(ax: Axes, title: str) -> None:
    ax.set_title(title, fontsize=9, loc="left", color=INK)
    ax.tick_params(labelsize=8)
    ax.spines[["top", "right"]].set_visible(False)
    ax.grid(color="#e5e5e5", lw=0.6)


def _pressures(ax: Axes, rollout: Rollout, pressure: np.ndarray, source: str, calibrated: bool) -> None:
    """Without a calibration rules have no common scale: each is then shown as a share of its own highest value."""
    if not calibrated:
        pressure = pressure / np.maximum(pressure.max(0), 1e-9)
    seconds = _seconds(rollout, len(pressure))
    for rule, values in zip(rollout.rules, pressure.T):
        color, dashes = LOOKS.get(rule, ("#777777", "-"))
        ax.plot(seconds, values, color=color, ls=dashes, lw=1.7, label=rule)
    ax.set_xlabel("time [s]", fontsize=8)
    scale = "rule pressure A" if calibrated else "not calibrated: share of its own highest"
    ax.set_ylabel(f"{scale} ({source})", fontsize=8)
    ax.set_xlim(0, seconds[-1])
    ax.set_ylim(bottom=0)
    ax.legend(fontsize=8, ncols=3, frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.13), handlelength=3.2)
    _plain(ax, "(a) rule pressures")


def _front(ax: Axes, rollout: Rollout, score: ScenarioScore) -> None:
    seconds, inverse = _seconds(rollout, len(rollout.ego)), inverse_ttc(rollout, score)
    ttc = np.where(inverse > 0, 1 / np.maximum(inverse, 1e-9), np.nan)
    (gap,) = ax.plot(seconds, front_clearance(rollout), color="#0072b2", lw=1.7, label="clearance [m]")
    ax.set_ylabel("clearance [m]", fontsize=8)
    ax.set_xlim(0, seconds[-1])
    ax.set_ylim(bottom=0)
    _plain(ax, "(b) front-agent clearance and TTC")
    other = ax.twinx()
    (time,) = other.plot(seconds, ttc, color="#d55e00", lw=1.4, ls=(0, (1.5, 1)), label="TTC [s]")
    other.set_ylabel("TTC [s]", fontsize=8)
    other.set_ylim(0, 8)
    other.tick_params(labelsize=8)
    other.spines[["top"]].set_visible(False)
    ax.legend(handles=[gap, time], fontsize=7, frameon=False, loc="best", handlelength=2.6)


def _corridor(ax: Axes, rollout: Rollout, score: ScenarioScore) -> None:
    seconds, margin = _seconds(rollout, len(rollout.ego)), -severities(rollout, score)["lane"]
    ax.plot(seconds, margin, color="#333333", lw=1.7)
    ax.fill_between(seconds, margin, 0, where=margin < 0, color="#d55e00", alpha=0.35, hatch="///", lw=0)
    ax.axhline(0, color=INK, lw=0.9)
    ax.axhline(0.3, color="#777777", lw=0.9, ls=":")
    ax.set_xlim(0, seconds[-1])
    ax.set_xlabel("time [s]", fontsize=8)
    ax.set_ylabel("margin [m]", fontsize=8)
    _plain(ax, "(c) signed route-corridor clearance")


def critical_frames(rollout: Rollout) -> tuple[int, int]:
    """Two moments of highest collision pressure, at least 2 s apart, in order of time."""
    pressures = pressures_of(rollout)
    series = pressures.get("head", pressures.get("teacher"))
    if series is None or "collision" not in rollout.rules:
        return len(rollout.ego) // 3, 2 * len(rollout.ego) // 3
    pressure = series[:, rollout.rules.index("collision")]
    first = int(pressure.argmax())
    far = np.abs(np.arange(len(pressure)) - first) >= APART
    second = int(np.where(far, pressure, -1.0).argmax()) if far.any() else first
    return min(first, second), max(first, second)


def matched_frames(pair: Pair, folder: Path, name: str, why: str) -> Picture:
    """Both planners at the same two moments, in the same square of the world."""
    from matplotlib.figure import Figure

    frames = critical_frames(pair.ours)
    shown = [box_centers(r.ego)[min(f, len(r.ego) - 1)] for r in (pair.base, pair.ours) for f in frames]
    view = Viewport.around(np.array(shown))
    road = crop_road(pair.scenario, [np.array([[view.x, view.y]])], 1.5 * view.half)
    figure = Figure(figsize=(12, 3.5), layout="constrained")
    axes = figure.subplots(1, 4)
    for ax, letter, (rollout, frame) in zip(axes, "abcd", [(r, f) for r in (pair.base, pair.ours) for f in frames]):
        draw_moment(ax, rollout, frame, road, view, others=BLUE)
        ax.set_title(f"({letter}) {rollout.planner}, {frame / 10:.1f} s", fontsize=9)
    _key(figure, BLUE)
    save(figure, folder, name)
    words = (
        f"{pair.words()}. {why} Frames: the two highest collision pressures of {pair.ours.planner}, at least 2 s apart."
    )
    return Picture(name, f"Matched frames: {why.lower().rstrip('.')}", words)


def strip(pair: Pair, folder: Path, name: str, why: str) -> Picture | None:
    """Upper row: the planner that makes contact; lower row: the other, at exactly the same samples."""
    from matplotlib.figure import Figure

    contact = next((c for c in pair.base_score.collisions if c.at_fault), None)
    if contact is None:
        return None
    frames = [max(0, contact.frame - 10 * s) for s in STRIP_SECONDS]
    centers = [box_centers(r.ego)[min(f, len(r.ego) - 1)] for r in (pair.base, pair.ours) for f in frames]
    other = pair.base.agents.state[contact.agent, contact.frame, :2]
    view = Viewport.around(np.array([*centers, other]), margin=6.0)
    road = crop_road(pair.scenario, [np.array([[view.x, view.y]])], 1.5 * view.half)
    figure = Figure(figsize=(12, 6.4), layout="constrained")
    axes = figure.subplots(2, 4)
    for row, rollout in zip(axes, (pair.base, pair.ours)):
        for ax, frame in zip(row, frames):
            last, first, seconds = ax is row[-1], rollout is pair.base, (contact.frame - frame) / 10
            hit = [contact.agent] if last and first else []
            draw_moment(ax, rollout, frame, road, view, others=DARK, hit=hit, alarm=last and first)
            if first:
                ax.set_title(
                    f"{seconds:g} s before contact" if not last else f"contact, {frame / 10:.1f} s", fontsize=9
                )
        row[0].set_ylabel(rollout.planner, fontsize=9)
    _key(figure, DARK)
    save(figure, folder, name)
    kind = contact.object.name.lower().replace("_", " ")
    words = (
        f"{pair.words()}. {why} First at-fault contact of {pair.base.planner} with a {kind} at "
        f"{contact.frame / 10:.1f} s; both rows show the same samples in the same square of the world. Colliding "
        "object (hatched) and ego are outlined in red."
    )
    return Picture(name, f"Collision strip: {why.lower().rstrip('.')}", words)


def _key(figure: Figure, others: str) -> None:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles = [
        Patch(fc=EGO, ec=INK, label="ego"),
        Patch(fc=others, ec="white", label="others"),
        Line2D([], [], color=PLAN, lw=3, label="plan of that moment"),
        Line2D([], [], color=PAST, lw=2.2, ls=(0, (2.2, 0.8)), label="driven so far"),
    ]
    figure.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, fontsize=8)


def draw_figures(pairs: Sequence[Pair], folder: Path, calibrated: bool = True) -> list[Picture]:
    """Case study and matched frames of the largest improvement and regression; strips of contacts that only one has."""
    ordered = sorted(pairs, key=lambda pair: (-pair.gain, pair.scenario.token))
    pictures: list[Picture | None] = []
    if not ordered:
        return []
    for pair, name, why in (
        (ordered[0], "improvement", _best(ordered[0])),
        (ordered[-1], "regression", _worst(ordered[-1])),
    ):
        pictures += [
            case_study(pair, folder, f"case-{name}", why, calibrated),
            matched_frames(pair, folder, f"frames-{name}", why),
        ]
    avoided = [p for p in ordered if _at_fault(p.base_score) and not _at_fault(p.ours_score)]
    caused = [p.turned() for p in reversed(ordered) if _at_fault(p.ours_score) and not _at_fault(p.base_score)]
    for k, pair in enumerate(avoided[:2]):
        pictures.append(
            strip(
                pair, folder, f"strip-avoided-{k + 1}", f"Contact avoided by {pair.ours.planner}, no. {k + 1} by gain."
            )
        )
    for pair in caused[:1]:
        pictures.append(
            strip(pair, folder, "strip-caused", f"Contact that only {pair.base.planner} makes, largest loss.")
        )
    return [picture for picture in pictures if picture is not None]


def _best(pair: Pair) -> str:
    return "Largest improvement of the score." if pair.gain > 0 else "No score improved; the smallest loss."


def _worst(pair: Pair) -> str:
    return "Largest regression of the score." if pair.gain < 0 else "No score got worse; the smallest gain."


def _at_fault(score: ScenarioScore) -> bool:
    return any(collision.at_fault for collision in score.collisions)
