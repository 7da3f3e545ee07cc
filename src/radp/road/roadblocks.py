"""The areas of roadblocks."""

from __future__ import annotations

import numpy as np
import shapely

from radp.geometry.ragged import Polygons


def union_of_members(polygons: list[np.ndarray], group: np.ndarray, count: int) -> Polygons:
    """`count` areas: the union of the polygons of each group."""
    areas: list[list[np.ndarray]] = []
    for g in range(count):
        members = [shapely.make_valid(shapely.Polygon(polygons[i])) for i in np.flatnonzero(group == g)]
        union = shapely.unary_union(members)
        parts = [p for p in shapely.get_parts(union) if p.geom_type == "Polygon"]
        areas.append([np.asarray(ring.coords) for p in parts for ring in (p.exterior, *p.interiors)])
    return Polygons.from_rings(areas)
