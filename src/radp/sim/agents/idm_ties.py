"""Which of several equally near objects an agent follows.

nuPlan leaves this to its spatial index: the objects sit in a sort-tile-recursive tree; those that the corridor's query
returns go, in the order in which it returns them, into a second tree, and this one is asked for the nearest. The
outcome depends on how the trees are packed, so the same trees are built here: slow, and only for a tie that matters.
"""

from __future__ import annotations

import numpy as np
import shapely

from radp.sim.agents.idm_fleet import Fleet
from radp.sim.agents.idm_lead import Obstacles
from radp.sim.agents.idm_path import clamp_progress, line_after
from radp.sim.agents.idm_roads import Roads


def break_tie(b: int, a: int, fleet: Fleet, roads: Roads, obstacles: Obstacles, object_rank: np.ndarray) -> int:
    """Slot of the object that agent a of world b follows; -1 when nothing is in its corridor.

    object_rank (M - 1,) orders the replayed objects among `obstacles` as they would be inserted.
    """
    agents = fleet.alive.shape[1]
    slots = [int(i) for i in np.flatnonzero(fleet.alive[b])]
    areas = [occupancy(b, i, fleet) for i in slots]
    for i in [0, *(1 + np.argsort(object_rank, kind="stable"))]:
        slots.append(agents + int(i))
        areas.append(shapely.Polygon(obstacles.box[i]))
    for k, stop in enumerate(obstacles.stop):
        slots.append(agents + len(obstacles.box) + k)
        row = slice(roads.stop_point_offsets[stop], roads.stop_point_offsets[stop + 1])
        areas.append(shapely.Polygon(roads.stop_point[row]))
    corridor = _corridor(b, a, fleet)
    hits = [i for i in shapely.STRtree(areas).query(corridor) if slots[i] != a and areas[i].intersects(corridor)]
    if not hits:
        return -1
    nearest = shapely.STRtree([areas[i] for i in hits]).nearest(occupancy(b, a, fleet))
    return slots[hits[int(nearest)]]


def occupancy(b: int, a: int, fleet: Fleet) -> shapely.Polygon:
    """The area that agent a of world b claims."""
    box = shapely.Polygon(fleet.box[b, a])
    if fleet.sweep_count[b, a] == 0:
        return box
    sweep = shapely.LineString(fleet.sweep[b, a, : fleet.sweep_count[b, a]])
    return shapely.unary_union([sweep.buffer(fleet.size[b, a, 1] / 2, cap_style="flat"), box])


def _corridor(b: int, a: int, fleet: Fleet) -> shapely.Polygon:
    path, count = fleet.path[b, a], int(fleet.path_count[b, a])
    line = np.empty((count + 1, 2))
    size = line_after(path, count, clamp_progress(path, count, fleet.progress[b, a]), line)
    return shapely.LineString(line[:size]).buffer(fleet.size[b, a, 1] / 2, cap_style="flat")
