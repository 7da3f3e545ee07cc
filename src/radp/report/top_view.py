"""A moment of a drive from above, for figures: road, others, ego, the plan of that moment and the way so far."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import torch

from radp.geometry.boxes import box_corners, make_boxes
from radp.geometry.frames import points_from_frame, pose_frame
from radp.metrics.drive import box_centers
from radp.report.viewer.road import RoadPicture
from radp.scenario import PACIFICA, Box, Ego
from radp.sim.rollout import Rollout

if TYPE_CHECKING:
    from matplotlib.axes import Axes

GROUND, ROAD_COLORS = "#ffffff", ("#e3e5e8", "#d3dae0", "#f6f6f3", "#9aa0a6", "white")  # of `draw_road`
EGO, DARK, BLUE, PLAN, PAST, ALARM, INK = "#ffd21f", "#3d434b", "#2f6fb5", "#00c2d1", "#f07d00", "#d7191c", "#14171a"


@dataclass(frozen=True)
class Viewport:
    """A square of the world: centre (x, y) and half of its side [m]."""

    x: float
    y: float
    half: float

    @classmethod
    def around(cls, points: np.ndarray, least: float = 22.0, margin: float = 8.0) -> Viewport:
        """The smallest square with all points (P, 2) and a margin."""
        low, high = points.min(0), points.max(0)
        x, y = (low + high) / 2
        return cls(float(x), float(y), float(max(least, (high - low).max() / 2 + margin)))

    def put(self, ax: Axes) -> None:
        ax.set_xlim(self.x - self.half, self.x + self.half)
        ax.set_ylim(self.y - self.half, self.y + self.half)
        ax.set_aspect("equal")
        ax.set_xticks([])
        ax.set_yticks([])
        ax.set_facecolor(GROUND)


def draw_moment(
    ax: Axes, rollout: Rollout, frame: int, road: RoadPicture, view: Viewport, others: str = DARK,
    hit: Sequence[int] = (), alarm: bool = False,
) -> None:  # fmt: skip
    """`hit`: rows of tracks outlined and hatched in red, `alarm`: the ego as well. Plans are drawn where kept."""
    from matplotlib.collections import PolyCollection
    from matplotlib.patheffects import Normal, Stroke

    frame = min(frame, len(rollout.ego) - 1)
    draw_road(ax, road)
    centers, tracks = box_centers(rollout.ego), rollout.agents
    ax.plot(*centers[: frame + 1].T, color=PAST, lw=2.2, ls=(0, (2.2, 0.8)), zorder=3)
    if rollout.plans is not None and frame < len(rollout.plans):
        casing = [Stroke(linewidth=4.2, foreground=INK), Normal()]
        ax.plot(*plan_in_world(rollout, frame).T, color=PLAN, lw=2.6, zorder=4, path_effects=casing)
    seen = np.flatnonzero(tracks.valid[:, frame])
    shapes = corners(tracks.state[seen, frame, : Box.VX], tracks.size[seen, 0], tracks.size[seen, 1])
    ax.add_collection(PolyCollection(list(shapes), facecolors=others, edgecolors="white", linewidths=0.6, zorder=5))
    struck = shapes[np.isin(seen, hit)]
    ax.add_collection(
        PolyCollection(list(struck), facecolors=others, edgecolors=ALARM, linewidths=2.2, hatch="////", zorder=6)
    )
    pose = np.append(centers[frame], rollout.ego[frame, Ego.HEADING])[None]
    ego = corners(pose, np.array([PACIFICA.length]), np.array([PACIFICA.width]))
    edge, width = (ALARM, 2.4) if alarm else (INK, 1.2)
    ax.add_collection(PolyCollection(list(ego), facecolors=EGO, edgecolors=edge, linewidths=width, zorder=7))
    for i in hit:  # a ring, for eyes and printers that do not see red
        x, y = (tracks.state[i, frame, :2] + centers[frame]) / 2
        ax.scatter(x, y, s=1500, facecolors="none", edgecolors=ALARM, linewidths=1.8, zorder=8)
    view.put(ax)


def plan_in_world(rollout: Rollout, frame: int) -> np.ndarray:
    """(H, 2) the plan made at `frame`, moved from the rear axle to the middle of the car."""
    assert rollout.plans is not None
    plan = torch.from_numpy(rollout.plans[frame]).double()
    middle = plan[:, :2] + PACIFICA.rear_axle_to_center * plan[:, 2:]
    pose = torch.from_numpy(rollout.ego[frame, : Ego.VX])
    frame_of = pose_frame(pose)
    return points_from_frame(middle, frame_of).numpy()


def corners(poses: np.ndarray, length: np.ndarray | float, width: np.ndarray | float) -> np.ndarray:
    """poses (n, 3) of box centres -> (n, 4, 2)."""
    frames = pose_frame(torch.from_numpy(np.ascontiguousarray(poses)))
    return box_corners(make_boxes(frames, torch.as_tensor(length), torch.as_tensor(width))).numpy()


def draw_road(ax: Axes, road: RoadPicture, colors: Sequence[str] = ROAD_COLORS) -> None:
    """`colors` of road, route, crosswalks, edges and dividers."""
    from matplotlib.collections import LineCollection
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path as Outline

    *areas, edge, divider = colors
    for rings, color in zip((road.road, road.route, road.crosswalks), areas):
        if rings:  # all rings as one path, so that holes stay open
            whole = [Outline(np.concatenate((ring, ring[:1])), closed=True) for ring in rings]
            ax.add_patch(PathPatch(Outline.make_compound_path(*whole), facecolor=color, edgecolor="none", zorder=1))
    ax.add_collection(LineCollection(road.edges, colors=edge, linewidths=1.0, zorder=2), autolim=False)
    dashes = LineCollection(road.dividers, colors=divider, linewidths=1.0, linestyles="--", zorder=2)
    ax.add_collection(dashes, autolim=False)
