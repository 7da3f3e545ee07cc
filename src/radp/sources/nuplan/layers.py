"""The layers of a map.gpkg in metres: every layer is stored in degrees and projected to the UTM zone of the map."""

from __future__ import annotations

import json
import math
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from radp.runs.errors import require
from radp.sources.convert import SourceError

NEEDED = (
    "lanes_polygons",
    "lane_connectors",
    "gen_lane_connectors_scaled_width_polygons",
    "baseline_paths",
    "boundaries",
    "lane_groups_polygons",
    "lane_group_connectors",
    "intersections",
)
OPTIONAL = ("stop_polygons", "road_segments", "generic_drivable_areas", "carpark_areas", "crosswalks")
VERSIONS = "nuplan-maps-v1.0.json"
DECIMALS = 6  # of a metre: beyond it there is only the noise of the projection


@dataclass(frozen=True)
class Layer:
    """R rows: ids (R,) text, geometry (R,) shapely in metres or None, columns of R values."""

    name: str
    ids: tuple[str, ...]
    geometry: np.ndarray
    columns: dict[str, np.ndarray]

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def row(self) -> dict[str, int]:
        """Id -> row, the first one of its kind."""
        return {name: i for i, name in reversed(list(enumerate(self.ids)))}

    def keys(self, column: str) -> list[str | None]:
        """A column of ids of another layer; None for NULL and negative numbers."""
        return [key_of(value) for value in self.column(column)]

    def numbers(self, column: str) -> np.ndarray:
        """(R,) float64, NaN for NULL; all NaN if there is no such column."""
        values = self.columns.get(column, np.full(len(self), None))
        try:
            return np.array([math.nan if value is None else value for value in values], dtype=np.float64)
        except (ValueError, TypeError):
            raise SourceError(f"layer {self.name}: column {column} holds a value that is no number") from None

    def column(self, column: str) -> np.ndarray:
        if column not in self.columns:
            raise SourceError(f"layer {self.name} has no column {column}")
        return self.columns[column]


def key_of(value: Any) -> str | None:
    """An id as text: 17, 17.0 and "17" are the same."""
    if value is None or (isinstance(value, (float, np.floating)) and not math.isfinite(value)):
        return None
    if isinstance(value, (float, np.floating, int, np.integer)):
        return str(int(value)) if value >= 0 else None
    text = str(value).strip()
    return text or None


def find_map(maps: Path, name: str) -> Path:
    """The file of a city's map: MAPS/CITY/VERSION/map.gpkg, the version as MAPS/nuplan-maps-v1.0.json says."""
    city = name.removesuffix(".gpkg")
    try:
        version = str(json.loads((maps / VERSIONS).read_bytes())[city]["version"])
    except (OSError, ValueError, KeyError, TypeError):
        version = "*"
    found = sorted((maps / city).glob(f"{version}/map.gpkg"))
    if not found:
        raise SourceError(f"{maps} holds no map of {city}: expected {maps / city}/{version}/map.gpkg")
    return found[-1]


def read_layers(path: Path) -> dict[str, Layer]:
    """All layers that are used; SourceError if the file or one of the needed layers cannot be read."""
    pyogrio, raw = require("pyogrio", "nuplan"), require("pyogrio.raw", "nuplan")
    pyproj = require("pyproj", "nuplan")
    faults = (pyogrio.errors.DataSourceError, pyogrio.errors.DataLayerError, pyproj.exceptions.ProjError,
              shapely.errors.ShapelyError, ValueError, RuntimeError, IndexError)  # fmt: skip
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            there = {str(name) for name, _ in pyogrio.list_layers(path)}
            target = _projection(raw.read(path, layer="meta"))
            absent = [name for name in NEEDED if name not in there]
            if absent:
                raise SourceError(f"{path}: the layer {absent[0]} is missing")
            return dict(_read_all(path, raw, pyproj, [n for n in (*NEEDED, *OPTIONAL) if n in there], target))
    except SourceError:
        raise
    except faults as error:
        raise SourceError(f"{path}: not a readable map ({' '.join(str(error).split())})") from None


def _projection(meta: tuple[Any, ...]) -> str:
    columns = dict(zip(meta[0]["fields"], meta[3]))
    for key, value in zip(columns["key"], columns["value"]):
        if key == "projectedCoordSystem":
            return str(value)
    raise ValueError("the layer meta names no projectedCoordSystem")


def _read_all(path: Path, raw: Any, pyproj: Any, names: list[str], target: str) -> Iterator[tuple[str, Layer]]:
    transformers: dict[str, Any] = {}
    for name in names:
        meta, fids, geometry, values = raw.read(path, layer=name, return_fids=True)
        origin = str(meta["crs"] or "EPSG:4326")
        if origin not in transformers:
            transformers[origin] = pyproj.Transformer.from_crs(origin, target, always_xy=True)
        shapes = shapely.force_2d(shapely.from_wkb(geometry))
        columns = dict(zip((str(field) for field in meta["fields"]), values))
        yield name, Layer(name, tuple(map(str, fids.tolist())), _project(shapes, transformers[origin]), columns)


def _project(shapes: np.ndarray, transformer: Any) -> np.ndarray:
    x, y = shapely.get_coordinates(shapes).T
    metres = np.stack(transformer.transform(x, y), -1) if len(x) else np.zeros((0, 2))
    return shapely.set_coordinates(shapes, np.round(metres, DECIMALS))
