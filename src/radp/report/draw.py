"""A scenario as a picture: road, lights, traffic now and over time, the ego and its way."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from radp.runs.errors import BadInput
from radp.runs.files import make_folder
from radp.scenario import PACIFICA, Areas, Box, Ego, LightState, ObjectType, Scenario

if TYPE_CHECKING:
    from matplotlib.axes import Axes

ROAD, JUNCTION, WALK, LINE = "#e4e4e0", "#d9d9d4", "#f3d98b", "#b5b5ad"
OBJECTS = {ObjectType.VEHICLE: "#4878a8", ObjectType.PEDESTRIAN: "#c0504d", ObjectType.BICYCLE: "#7a5ca0"}
LIGHTS = {LightState.GREEN: "#3a9d4f", LightState.YELLOW: "#e0a000", LightState.RED: "#d03030"}
PICTURES = (".png", ".svg", ".pdf")
EGO, ROUTE = "#e07000", "#cfe3cf"


def check_picture(path: Path) -> None:
    """BadInput unless a picture can be written there; asked before anything is computed for it."""
    if path.suffix.lower() not in PICTURES:
        raise BadInput(f"{path}: no picture format {path.suffix or 'at all'}, expected one of {', '.join(PICTURES)}")
    if path.is_dir():
        raise BadInput(f"{path} is a folder; expected a file for the picture")
    make_folder(path.parent)


def draw_scenario(scenario: Scenario, ax: Axes, frame: int, reach: float = 60.0) -> None:
    """Draw frame `frame` (0 = first of the drive) and the tracks of the whole window within `reach` metres."""
    t = scenario.start + frame
    center = scenario.ego[t, :2]
    _draw_road(scenario, ax, t)
    tracks = scenario.tracks
    for i in range(len(tracks)):
        color = OBJECTS.get(ObjectType(tracks.type[i]), "#666666")
        seen = tracks.valid[i]
        ax.plot(*tracks.state[i, seen, :2].T, color=color, lw=0.6, alpha=0.45)
        if seen[t]:
            length, width = tracks.size[i, :2]
            ax.fill(*_corners(tracks.state[i, t, : Box.VX], length, width).T, fc=color, ec="black", lw=0.4, zorder=5)
    pose = scenario.ego[t, : Ego.VX].copy()
    ax.plot(*scenario.ego[scenario.start :, :2].T, color=EGO, lw=1.6, zorder=4)
    pose[:2] += PACIFICA.rear_axle_to_center * np.array([np.cos(pose[2]), np.sin(pose[2])])
    ax.fill(*_corners(pose, PACIFICA.length, PACIFICA.width).T, fc=EGO, ec="black", lw=0.6, zorder=6)
    ax.set_xlim(center[0] - reach, center[0] + reach)
    ax.set_ylim(center[1] - reach, center[1] + reach)
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    ax.set_title(f"{scenario.kind}  {scenario.ego[t, Ego.VX]:.1f} m/s", fontsize=8)


def _draw_road(scenario: Scenario, ax: Axes, t: int) -> None:
    road = scenario.map
    for areas, color in ((road.drivable, ROAD), (road.intersections, JUNCTION), (road.crosswalks, WALK)):
        _fill(areas, ax, color)
    on_route = {road.roadblocks.index[block] for block in scenario.route if block in road.roadblocks.index}
    for block in on_route:
        for ring in road.roadblocks.polygons[block]:
            ax.fill(*ring.T, fc=ROUTE, ec="none", alpha=0.7)
    for i in range(len(road)):
        if not road.is_connector[i]:
            ax.plot(*road.left[i].T, color=LINE, lw=0.5)
            ax.plot(*road.right[i].T, color=LINE, lw=0.5)
    for column, lane in enumerate(scenario.lights.lane):
        state = LightState(scenario.lights.state[t, column])
        if state in LIGHTS:
            ax.plot(*road.centerlines[lane][:4].T, color=LIGHTS[state], lw=2.0, zorder=3)


def _fill(areas: Areas, ax: Axes, color: str) -> None:
    """Areas with their holes."""
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    for i in range(len(areas)):
        rings = [Path(np.concatenate((ring, ring[:1])), closed=True) for ring in areas.polygons[i] if len(ring) > 2]
        if rings:
            ax.add_patch(PathPatch(Path.make_compound_path(*rings), fc=color, ec="none"))


def _corners(pose: np.ndarray, length: float, width: float) -> np.ndarray:
    ahead = np.array([np.cos(pose[2]), np.sin(pose[2])])
    left = np.array([-ahead[1], ahead[0]])
    signs = ((1, 1), (-1, 1), (-1, -1), (1, -1))
    return np.array([pose[:2] + a * ahead * length / 2 + b * left * width / 2 for a, b in signs])
