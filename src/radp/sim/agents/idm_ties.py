"""Which of several equally near objects an agent follows.

nuPlan leaves this to its spatial index: the objects sit in a sort-tile-recursive tree; those that the corridor's query
returns go, in the order in which it returns them, into a second tree, and this one is asked for the nearest. The
outcome depends on how the trees are packed, so the same trees are built here: slow, and only for a tie that matters.
"""

from __future__ import annotations

import numpy as np
import shapely

from radp.sim.agents.idm_fleet import BOX, Claims, Fleet
from radp.sim.agents.idm_path import clamp_progress, line_after


def break_tie(b: int, a: int, worlds: int, fleet: Fleet, claims: Claims, object_rank: np.ndarray) -> int:
    """Row of the claim that agent a of world b follows; -1 when nothing is in its corridor.

    object_rank (O,) is the order in which the replayed objects of the world are inserted.
    """
    agents, slots = len(fleet.x) // worlds, len(claims.present) // worlds
    order = np.arange(slots)
    objects = slice(agents + 1, agents + 1 + len(object_rank))
    order[objects] = order[objects][np.argsort(object_rank, kind="stable")]
    present = [int(k) for k in order if claims.present[b * slots + k]]
    areas = [_area(b * slots + k, b * agents + k if k < agents else None, fleet, claims) for k in present]
    corridor = _corridor(b * agents + a, fleet)
    hits = [i for i in shapely.STRtree(areas).query(corridor) if present[i] != a and areas[i].intersects(corridor)]
    if not hits:
        return -1
    nearest = shapely.STRtree([areas[i] for i in hits]).nearest(areas[present.index(a)])
    return b * slots + present[hits[int(nearest)]]


def _area(q: int, g: int | None, fleet: Fleet, claims: Claims) -> shapely.Polygon:
    """Claim q; g is the agent whose claim it is."""
    first = 2 * q * (len(claims.point) // (2 * len(claims.present)))
    box = shapely.Polygon(claims.point[first : first + claims.piece_size[q, BOX]])
    if g is None or fleet.sweep_count[g] == 0:
        return box
    sweep = shapely.LineString(fleet.sweep[g, : fleet.sweep_count[g]])
    return shapely.unary_union([sweep.buffer(fleet.width[g] / 2, cap_style="flat"), box])


def _corridor(g: int, fleet: Fleet) -> shapely.Polygon:
    count, at = int(fleet.path_count[g]), g * (len(fleet.path) // len(fleet.x))
    line = np.empty((count + 1, 2))
    size = line_after(fleet.path, at, count, clamp_progress(fleet.path, at, count, fleet.progress[g]), line)
    return shapely.LineString(line[:size]).buffer(fleet.width[g] / 2, cap_style="flat")
