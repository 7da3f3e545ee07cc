"""The layers of a map.gpkg in metres: every layer is stored in degrees and projected to the UTM zone of the map."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import shapely

from radp.runs.errors import require
from radp.sources.convert import SourceError
from radp.sources.nuplan.database import Database

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
PLAIN_NAME = re.compile(r"(?!\.)[\w.-]{1,80}", re.ASCII)  # one folder, and none above
EPSG = re.compile(r"(?i:epsg):(\d{4,6})", re.ASCII)  # other descriptions of a projection may name files
ENVELOPES = (0, 32, 48, 48, 64)  # bytes of the box that a geometry begins with, by its kind
DEGREES = "EPSG:4326"  # of layers that name no system
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
    if not PLAIN_NAME.fullmatch(city):
        raise SourceError(f"{city[:60]!a} is no name of a map")
    try:
        version = str(json.loads((maps / VERSIONS).read_bytes())[city]["version"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        version = "*"
    if version != "*" and not PLAIN_NAME.fullmatch(version):
        raise SourceError(f"{maps / VERSIONS}: {version[:60]!a} is no version of a map")
    found = sorted((maps / city).glob(f"{version}/map.gpkg"))
    if not found:
        raise SourceError(f"{maps} holds no map of {city}: expected {maps / city}/{version}/map.gpkg")
    return found[-1]


def read_layers(path: Path) -> dict[str, Layer]:
    """All layers that are used; SourceError if the file or one of the needed layers cannot be read."""
    pyproj = require("pyproj", "nuplan")
    faults = (pyproj.exceptions.ProjError, shapely.errors.ShapelyError, ValueError, TypeError, IndexError, MemoryError)
    try:
        with Database(path, "map") as database:
            there = database.tables()
            target = _projection(database)
            absent = [name for name in NEEDED if name not in there]
            if absent:
                raise SourceError(f"{path}: the layer {absent[0]} is missing")
            return dict(_read_all(database, pyproj, [n for n in (*NEEDED, *OPTIONAL) if n in there], target))
    except SourceError:
        raise
    except faults as error:
        raise SourceError(f"{path}: not a readable map ({' '.join(str(error).split())[:200]})") from None


def _projection(database: Database) -> str:
    for key, value in database.rows("SELECT key, value FROM meta"):
        if key == "projectedCoordSystem":
            return epsg(value)
    raise ValueError("the layer meta names no projectedCoordSystem")


def epsg(value: Any) -> str:
    """A coordinate system by its number in the EPSG list."""
    found = EPSG.fullmatch(str(value).strip())
    if found is None:
        raise ValueError(f"{str(value)[:60]!a} is no coordinate system of the EPSG list")
    return f"EPSG:{found[1]}"


def _read_all(database: Database, pyproj: Any, names: list[str], target: str) -> Iterator[tuple[str, Layer]]:
    columns = {str(t).lower(): (c, s) for t, c, s in database.rows(
        "SELECT table_name, column_name, srs_id FROM gpkg_geometry_columns")}  # fmt: skip
    systems = {s: (o, n) for s, o, n in database.rows(
        "SELECT srs_id, organization, organization_coordsys_id FROM gpkg_spatial_ref_sys")}  # fmt: skip
    transformers: dict[str, Any] = {}
    for name in names:
        if name not in columns:
            raise ValueError(f"the layer {name} has no geometry")
        geometry, system = columns[name]
        organization, number = systems.get(system, ("NONE", 0))
        origin = DEGREES if str(organization).upper() == "NONE" else epsg(f"{organization}:{number}")
        if origin not in transformers:
            transformers[origin] = pyproj.Transformer.from_crs(origin, target, always_xy=True)
        yield name, _layer(database, name, str(geometry), transformers[origin])


def _layer(database: Database, name: str, geometry: str, transformer: Any) -> Layer:
    fields, rows = database.ask(f'SELECT rowid, * FROM "{name}" ORDER BY rowid')
    if geometry not in fields:
        raise ValueError(f"the layer {name} has no column {geometry[:60]!a}")
    table = list(zip(*rows)) if rows else [()] * len(fields)
    shapes = shapely.force_2d(shapely.from_wkb(_objects([well_known(blob) for blob in table[fields.index(geometry)]])))
    columns = {field: _objects(values) for field, values in zip(fields[1:], table[1:]) if field != geometry}
    return Layer(name, tuple(map(str, table[0])), _project(shapes, transformer), columns)


def _objects(values: Sequence[Any]) -> np.ndarray:
    """(R,) of whatever SQLite has: numbers, texts, None."""
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def well_known(blob: Any) -> bytes | None:
    """A geometry of a GeoPackage -> its well-known bytes, which follow a head of 8 bytes and a box; None for NULL."""
    if blob is None:
        return None
    if not isinstance(blob, bytes) or blob[:2] != b"GP" or len(blob) < 8:
        raise ValueError("a geometry is none of a GeoPackage")
    envelope = blob[3] >> 1 & 7
    if envelope >= len(ENVELOPES) or blob[3] & 0x20:
        raise ValueError("a geometry has an unknown head")
    return blob[8 + ENVELOPES[envelope] :]


def _project(shapes: np.ndarray, transformer: Any) -> np.ndarray:
    x, y = shapely.get_coordinates(shapes).T
    metres = np.stack(transformer.transform(x, y), -1) if len(x) else np.zeros((0, 2))
    return shapely.set_coordinates(shapes, np.round(metres, DECIMALS))
