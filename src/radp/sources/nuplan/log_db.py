"""One log: a SQLite file with the frames of a merged lidar at 20 Hz, the ego, boxes, lights and scenario tags.

Tokens are blobs of 8 bytes, shown as 16 hex digits. Times are integer microseconds, positions metres in UTM.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from radp.scenario import Box, Ego, LightState, ObjectType
from radp.sources.convert import SourceError
from radp.sources.limits import MOST_FRAMES
from radp.sources.nuplan.database import Database

TABLES = (
    "log", "lidar", "lidar_pc", "ego_pose", "scene", "scenario_tag", "track", "category", "lidar_box",
    "traffic_light_status",
)  # fmt: skip
UNTAGGED = "unknown"  # the kind of a scenario that no tag names
LIGHTS = {name.lower(): int(LightState[name]) for name in ("GREEN", "YELLOW", "RED")}
UNKNOWN_LIGHT = int(LightState.UNKNOWN)
FRAMES_OF_LIDAR = "lidar_pc AS f JOIN lidar AS l ON l.token = f.lidar_token AND l.channel = 'MergedPointCloud'"


@dataclass(frozen=True)
class Pick:
    """A scenario that a log offers: `token` and `time_us` of the tagged frame, `kind` the tag, `map` its city."""

    token: str
    kind: str
    time_us: int
    log: Path
    map: str


@dataclass(frozen=True)
class LogFrames:
    """F frames: tokens (F,), time_us (F,) int64 of the lidar, ego (F, 11)."""

    tokens: list[bytes]
    time_us: np.ndarray
    ego: np.ndarray

    def take(self, rows: np.ndarray) -> LogFrames:
        return LogFrames([self.tokens[i] for i in rows], self.time_us[rows], self.ego[rows])


@dataclass(frozen=True)
class Boxes:
    """R boxes in the order of the file: frame (R,), track (R,) index into `tracks`, state (R, 5), size (R, 3)."""

    frame: np.ndarray
    track: np.ndarray
    state: np.ndarray  # columns Box
    size: np.ndarray  # length, width, height
    tracks: list[bytes]
    type: np.ndarray  # (A,) ObjectType of each track


class LogDb(Database):
    """A log that is open for reading; every fault becomes a SourceError of one sentence that names the file."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, "log")
        self.refuse_unless_tables(TABLES)

    def __enter__(self) -> LogDb:
        return self

    def map_name(self) -> str:
        """Name of the city's map, as the log writes it."""
        found = self.rows("SELECT map_version FROM log")
        if not found or not found[0][0]:
            raise SourceError(f"{self.path}: the table log names no map")
        return str(found[0][0])

    def offers(self, types: Sequence[str] | None, with_goal: bool) -> list[Pick]:
        """Tagged frames by time, of scenes that have two scenes before and two behind them in the log.

        A frame with several tags counts as the alphabetically last allowed one. `types` None: every frame.
        """
        scenes = [token for (token,) in self.rows("SELECT token FROM scene ORDER BY name")][2:-2]
        if with_goal:
            aimed = "SELECT s.token FROM scene AS s JOIN ego_pose AS e ON e.token = s.goal_ego_pose_token"
            goals = {token for (token,) in self.rows(aimed)}
            scenes = [token for token in scenes if token in goals]
        usable, city = set(scenes), self.map_name()
        join, where = "LEFT JOIN", ""
        if types is not None:
            join, where = "JOIN", f"WHERE t.type IN ({_marks(types)})"
        query = (
            f"SELECT f.token, f.timestamp, f.scene_token, MAX(t.type) FROM {FRAMES_OF_LIDAR} "
            f"{join} scenario_tag AS t ON t.lidar_pc_token = f.token {where} GROUP BY f.token ORDER BY f.timestamp"
        )
        found = [row for row in self.rows(query, tuple(types or ())) if row[2] in usable]
        if not all(isinstance(token, bytes) and isinstance(time_us, int) for token, time_us, _, _ in found):
            raise SourceError(f"{self.path}: lidar_pc holds a token that is no blob or a time that is no integer")
        if not all(kind is None or isinstance(kind, str) for *_, kind in found):
            raise SourceError(f"{self.path}: scenario_tag holds a type that is no text")
        return [Pick(token.hex(), kind or UNTAGGED, time_us, self.path, city) for token, time_us, _, kind in found]

    def frames(self, first_us: int, last_us: int) -> LogFrames:
        """All frames between two times, both included. The time of the ego is that of the lidar."""
        query = (
            "SELECT f.token, f.timestamp, e.x, e.y, e.qw, e.qx, e.qy, e.qz, e.vx, e.vy, "
            f"e.acceleration_x, e.acceleration_y FROM {FRAMES_OF_LIDAR} "
            "LEFT JOIN ego_pose AS e ON e.token = f.ego_pose_token "
            "WHERE f.timestamp BETWEEN ? AND ? ORDER BY f.timestamp"
        )
        found = self.rows(query, (first_us, last_us))
        if len(found) > MOST_FRAMES:
            raise SourceError(f"{self.path}: {len(found)} frames lie in the time of one scenario")
        if not all(isinstance(row[0], bytes) and isinstance(row[1], int) for row in found):
            raise SourceError(f"{self.path}: lidar_pc holds a token that is no blob or a time that is no integer")
        values = self._floats([row[2:] for row in found], 10, "ego_pose")
        ego = np.zeros((len(found), len(Ego)))
        ego[:, [Ego.X, Ego.Y]] = values[:, :2]
        ego[:, Ego.HEADING] = yaw_of(values[:, 2:6])
        ego[:, [Ego.VX, Ego.VY, Ego.AX, Ego.AY]] = np.nan_to_num(values[:, 6:])
        return LogFrames([row[0] for row in found], np.array([row[1] for row in found], dtype=np.int64), ego)

    def boxes(self, frames: Sequence[bytes]) -> Boxes:
        """The boxes of some frames; static objects have no velocity."""
        query = (
            "SELECT lidar_pc_token, track_token, x, y, yaw, vx, vy, length, width, height FROM lidar_box "
            f"WHERE lidar_pc_token IN ({_marks(frames)})"
        )
        found = self.rows(query, frames)
        position = {token: i for i, token in enumerate(frames)}
        tracks = list(dict.fromkeys(row[1] for row in found))
        number = {token: i for i, token in enumerate(tracks)}
        values = self._floats([row[2:] for row in found], len(Box) + 3, "lidar_box")
        kinds, track = self._types(tracks), np.array([number[row[1]] for row in found], dtype=np.int64)
        values[kinds[track] > ObjectType.BICYCLE, Box.VX : Box.VY + 1] = 0.0
        return Boxes(
            frame=np.array([position[row[0]] for row in found], dtype=np.int64),
            track=track,
            state=values[:, : len(Box)],
            size=values[:, len(Box) :],
            tracks=tracks,
            type=kinds,
        )

    def _types(self, tracks: Sequence[bytes]) -> np.ndarray:
        """(A,) uint8 ObjectType of tracks."""
        query = "SELECT t.token, c.name FROM track AS t JOIN category AS c ON c.token = t.category_token"
        names = dict(self.rows(f"{query} WHERE t.token IN ({_marks(tracks)})", tracks))
        kinds = np.zeros(len(tracks), dtype=np.uint8)
        for i, token in enumerate(tracks):
            name = str(names.get(token)).upper()
            if name not in ObjectType.__members__:
                raise SourceError(f"{self.path}: track {token.hex()} is of the unknown category {names.get(token)!r}")
            kinds[i] = ObjectType[name]
        return kinds

    def lights(self, frames: Sequence[bytes]) -> tuple[np.ndarray, list[str], np.ndarray, np.ndarray]:
        """Lights listed in some frames: frame (R,), names of C connectors, which of them (R,), LightState (R,).

        There are thousands, but they seldom change: one text for each frame is read, and each text taken apart once.
        """
        texts = self.rows(
            "SELECT lidar_pc_token, group_concat(coalesce(lane_connector_id, '') || ' ' || coalesce(status, '')) "
            f"FROM traffic_light_status WHERE lidar_pc_token IN ({_marks(frames)}) GROUP BY lidar_pc_token",
            frames,
        )
        listed = {text: [str(light).partition(" ") for light in text.split(",")] for _, text in texts}
        names = list(dict.fromkeys(name for lights in listed.values() for name, _, _ in lights))
        number, position = {name: i for i, name in enumerate(names)}, {token: i for i, token in enumerate(frames)}
        seen = {
            text: np.array(
                [(number[name], LIGHTS.get(word, UNKNOWN_LIGHT)) for name, _, word in lights], dtype=np.int64
            )
            for text, lights in listed.items()
        }
        parts = [seen[text] for _, text in texts]
        which, state = np.concatenate((np.zeros((0, 2), dtype=np.int64), *parts)).T
        frame = np.repeat([position[token] for token, _ in texts], [len(part) for part in parts]).astype(np.int64)
        return frame, names, which, state.astype(np.uint8)

    def route_and_goal(self, token: str) -> tuple[tuple[str, ...], np.ndarray | None]:
        """Roadblock ids and goal pose (3,) of the scene to which a frame belongs."""
        query = (
            "SELECT s.roadblock_ids, e.x, e.y, e.qw, e.qx, e.qy, e.qz FROM lidar_pc AS f "
            "JOIN scene AS s ON s.token = f.scene_token LEFT JOIN ego_pose AS e ON e.token = s.goal_ego_pose_token "
            "WHERE f.token = ?"
        )
        found = self.rows(query, (bytes.fromhex(token),))
        if not found:
            raise SourceError(f"{self.path}: frame {token} belongs to no scene")
        route = tuple(block for block in re.split(r"[\s,]+", str(found[0][0] or "")) if block)
        if found[0][1] is None:
            return route, None
        pose = self._floats([found[0][1:]], 6, "ego_pose")
        return route, np.array([*pose[0, :2], yaw_of(pose[:, 2:])[0]])

    def _floats(self, rows: Sequence[Sequence[Any]], width: int, table: str) -> np.ndarray:
        """(R, width) float64, NaN for NULL."""
        try:
            return np.array(rows, dtype=np.float64).reshape(len(rows), width)
        except (ValueError, TypeError) as error:
            raise SourceError(f"{self.path}: {table} holds a value that is no number ({error})") from None


def yaw_of(quaternion: np.ndarray) -> np.ndarray:
    """(R, 4) w, x, y, z -> (R,) heading as the devkit reads it: the sign of the x*y term is that of its library."""
    with np.errstate(invalid="ignore", divide="ignore"):
        w, x, y, z = (quaternion / np.linalg.norm(quaternion, axis=1, keepdims=True)).T
        return np.arctan2(2.0 * (w * z - x * y), 1.0 - 2.0 * (y * y + z * z))


def _marks(values: Sequence[Any]) -> str:
    return ",".join("?" * len(values))
