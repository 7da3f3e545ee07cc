"""A drive as a film for slides: the top view and the pressures, drawn with matplotlib."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import cycle
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from radp.metrics.drive import box_centers
from radp.report.top_view import corners, draw_road
from radp.report.viewer.drive import DriveReport
from radp.report.viewer.frames import to_world
from radp.report.viewer.road import crop_road
from radp.report.viewer.words import kind_words
from radp.runs.errors import MissingExtra
from radp.runs.files import atomic_path
from radp.runs.progress import Progress
from radp.scenario import PACIFICA, Box, Ego, LightState, ObjectType

if TYPE_CHECKING:
    from matplotlib.animation import AbstractMovieWriter
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SIDE = 40.0  # m from the middle of the picture to its upper and lower edge
EVERY = {".gif": 2, ".mp4": 1}  # samples between pictures
DPI = 100
GROUND, ROAD_COLORS = "#eeece6", ("#d8dadd", "#c3d0d9", "#f2f2ef", "#a3a8ae", "#ffffff")
INK, MUTED, PRESSURE, STATIC, EGOS = "#1d2025", "#62676f", "#d55e00", "#f0e442", ("#7a3ff2", "#5a8f00")
RULES = ("#d55e00", "#0072b2", "#e69f00", "#cc79a7", "#009e73", "#56b4e9")
OBJECTS = {ObjectType.VEHICLE: "#7d8895", ObjectType.PEDESTRIAN: "#cc79a7", ObjectType.BICYCLE: "#009e73"}
LIGHTS = {LightState.GREEN: ("#009e73", 1.5), LightState.YELLOW: ("#e8c400", 3.0), LightState.RED: ("#d55e00", 4.0)}


def write_film(drives: Sequence[DriveReport], path: Path) -> None:
    """One film of one or two drives of a scenario; the suffix of the path (.gif or .mp4) decides how it is written."""
    writer = _writer(path.suffix)
    from matplotlib.figure import Figure

    samples = max(len(drive.rollout.ego) for drive in drives)
    frames = range(0, samples, EVERY[path.suffix])
    figure = Figure(figsize=(6.4 * len(drives) if len(drives) > 1 else 8.0, 6.4), dpi=DPI, facecolor="white")
    picture = FilmPicture(figure, drives)
    with (
        atomic_path(path) as temporary,
        writer.saving(figure, str(temporary), DPI),
        Progress(f"film {path.name}", len(frames)) as progress,
    ):
        for frame in frames:
            picture.show(frame)
            writer.grab_frame()
            progress.advance()


def check_film(suffix: str) -> None:
    """MissingExtra if this machine cannot write such films."""
    _writer(suffix)


def _writer(suffix: str) -> AbstractMovieWriter:
    """matplotlib's own writer of GIF, or ffmpeg for MP4."""
    import matplotlib
    from matplotlib.animation import FFMpegWriter, PillowWriter

    if suffix == ".gif":
        return PillowWriter(fps=10 / EVERY[suffix])  # type: ignore[arg-type]  # fractions work
    program = shutil.which("ffmpeg")
    if program is None:
        try:
            import imageio_ffmpeg
        except ImportError:
            raise MissingExtra(
                'films in MP4 need ffmpeg: install it, or pip install "radp[film]" (GIF needs nothing)'
            ) from None
        program = imageio_ffmpeg.get_ffmpeg_exe()
    matplotlib.rcParams["animation.ffmpeg_path"] = program
    return FFMpegWriter(fps=10 / EVERY[suffix], extra_args=["-pix_fmt", "yuv420p"])  # type: ignore[arg-type]  # fractions work


class FilmPicture:
    """A figure whose moving parts can be put to any sample of the drives."""

    def __init__(self, figure: Figure, drives: Sequence[DriveReport]) -> None:
        explained = any(drive.explanation is not None for drive in drives)
        rows = figure.add_gridspec(
            2 if explained else 1, len(drives), height_ratios=(3.4, 1) if explained else None,
            left=0.0 if not explained else 0.01, right=0.99, top=0.94, bottom=0.07 if explained else 0.01,
            hspace=0.06, wspace=0.02,
        )  # fmt: skip
        scenario = drives[0].rollout.scenario
        figure.suptitle(f"{kind_words(scenario.kind)}  ·  {scenario.token}".replace("$", r"\$"), fontsize=10, color=INK)
        self.views = [_View(figure.add_subplot(rows[0, i]), drive, EGOS[i]) for i, drive in enumerate(drives)]
        self.curves = [
            _Curves(figure.add_subplot(rows[1, i]), drive)
            for i, drive in enumerate(drives)
            if drive.explanation is not None
        ]

    def show(self, frame: int) -> None:
        for view in self.views:
            view.show(frame)
        for curves in self.curves:
            curves.show(frame)


class _View:
    """The top view of one drive, the ego in the middle."""

    def __init__(self, ax: Axes, report: DriveReport, color: str) -> None:
        from matplotlib.collections import LineCollection, PolyCollection

        self.ax, self.report, self.rollout = ax, report, report.rollout
        ax.set_facecolor(GROUND)
        ax.spines[:].set_visible(False)
        ax.set_xticks([])
        ax.set_yticks([])
        self.across = SIDE * ax.bbox.width / ax.bbox.height
        self.road = crop_road(self.rollout.scenario, [self.rollout.ego[:, :2]], 2.5 * SIDE)
        draw_road(ax, self.road, ROAD_COLORS)
        self.center = box_centers(self.rollout.ego)
        ax.plot(*self.center.T, color=color, lw=0.8, ls=":", zorder=3)
        (self.trail,) = ax.plot([], [], color=color, lw=2.5, zorder=3, solid_capstyle="round")
        (self.plan,) = ax.plot([], [], color=color, lw=6, alpha=0.45, zorder=4, solid_capstyle="round")
        self.lights = LineCollection([], zorder=3, capstyle="butt")
        self.others = PolyCollection([], edgecolors=INK, linewidths=0.5, zorder=5)
        self.ego = PolyCollection([], facecolors=color, edgecolors=INK, linewidths=1.0, zorder=6)
        for moving in (self.lights, self.others, self.ego):
            ax.add_collection(moving)
        self.clock = ax.text(0.015, 0.975, "", transform=ax.transAxes, va="top", fontsize=9, color=INK, zorder=9)
        self.clock.set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 0.85, "boxstyle": "round"})
        self.name = f"{self.rollout.planner}  score {100 * report.card['score']:.1f}".replace("$", r"\$")

    def show(self, frame: int) -> None:
        frame = min(frame, len(self.rollout.ego) - 1)
        x, y = self.center[frame]
        self.ax.set_xlim(x - self.across, x + self.across)
        self.ax.set_ylim(y - SIDE, y + SIDE)
        self.trail.set_data(*self.center[: frame + 1].T)
        self._show_lights(frame)
        self._show_boxes(frame)
        plans = self.rollout.plans
        if plans is not None and frame < len(plans):
            ahead = to_world(self.rollout.ego[frame : frame + 1], plans[frame : frame + 1, :, :2])[0]
            self.plan.set_data(*ahead.T)
        seconds = (self.rollout.time_us[frame] - self.rollout.time_us[0]) * 1e-6
        self.clock.set_text(f"{self.name}\n{seconds:4.1f} s   {self.rollout.ego[frame, Ego.VX]:4.1f} m/s")

    def _show_lights(self, frame: int) -> None:
        scenario = self.rollout.scenario
        states = scenario.lights.state[scenario.start + frame][self.road.light_columns]
        shown = [i for i, state in enumerate(states) if state in LIGHTS]
        self.lights.set_segments([self.road.light_bars[i].reshape(2, 2) for i in shown])
        self.lights.set_color([LIGHTS[LightState(states[i])][0] for i in shown])
        self.lights.set_linewidth([LIGHTS[LightState(states[i])][1] for i in shown])

    def _show_boxes(self, frame: int) -> None:
        from matplotlib.colors import to_rgb

        tracks, why = self.rollout.agents, self.report.explanation
        seen = np.flatnonzero(tracks.valid[:, frame])
        share = why.tint()[frame, seen] if why is not None and frame < len(why.share) else np.zeros(len(seen))
        plain = np.array([to_rgb(OBJECTS.get(ObjectType(tracks.type[i]), STATIC)) for i in seen]).reshape(-1, 3)
        boxes = corners(tracks.state[seen, frame, : Box.VX], tracks.size[seen, 0], tracks.size[seen, 1])
        self.others.set_verts(list(boxes))
        self.others.set_facecolor(plain + share[:, None] * (np.array(to_rgb(PRESSURE)) - plain))
        pose = np.append(self.center[frame], self.rollout.ego[frame, Ego.HEADING])[None]
        self.ego.set_verts(list(corners(pose, PACIFICA.length, PACIFICA.width)))


class _Curves:
    """The pressures of one drive over time, with a cursor."""

    def __init__(self, ax: Axes, report: DriveReport) -> None:
        why, seconds = report.explanation, (report.rollout.time_us - report.rollout.time_us[0]) * 1e-6
        assert why is not None  # chosen by the caller
        self.seconds = seconds
        for name, values, color in zip(why.rules, why.pressure.T, cycle((*RULES, INK))):
            ax.plot(seconds[: len(values)], values, color=color, lw=1.2, label=name)
        ax.set_xlim(0.0, max(float(seconds[-1]), 0.1))
        ax.set_ylim(0.0, max(0.1, 1.35 * float(np.nanmax(why.pressure, initial=0.0))))
        ax.set_yticks([])
        ax.tick_params(labelsize=7, colors=MUTED, length=2)
        ax.spines[["top", "left", "right"]].set_visible(False)
        ax.legend(fontsize=7, ncols=6, frameon=False, loc="upper left", handlelength=1.2, columnspacing=1.2)
        self.cursor = ax.axvline(0.0, color=INK, lw=1.0)

    def show(self, frame: int) -> None:
        self.cursor.set_xdata([self.seconds[min(frame, len(self.seconds) - 1)]] * 2)
