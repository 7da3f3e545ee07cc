"""Plans from scene arrays in a robot's process: no torch, a deadline, a status for each rule."""

from __future__ import annotations

import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from radp.runs.errors import BadInput, reading_file
from radp.runtime.geometry import Body, cheap_geometry
from radp.runtime.manifest import GOLDEN, ExportManifest, read_manifest
from radp.runtime.sessions import Session, open_session
from radp.runtime.solver import close_seam, solve, to_metres
from radp.runtime.status import RuleStatus, rule_statuses

VX = 4  # column of ego_current_state
MOST_GOLDEN = 1 << 28  # bytes of the golden pair after decompression: a few scenes and plans
SAME = 1e-3  # m and units of pressure: how far the golden pair may be off on another processor
# OpenVINO takes jerk and curvature of a plan so roughly that pressures were off by 0.08
ALWAYS = {"head": "onnx"}
Arrays = Mapping[str, np.ndarray]
Geometry = Callable[[np.ndarray], np.ndarray]  # trajectories (B, P, T, 4) -> (B, G)


@dataclass(frozen=True)
class RuntimePlan:
    """One plan in the ego frame of the scene it was made for: x, y, cos, sin of the rear axle every 0.1 s, metres."""

    trajectory: np.ndarray  # (T, 4)
    predictions: np.ndarray  # (K, T, 4) box centres of the first K neighbours of the scene
    pressures: dict[str, float]  # by rule; empty without a head
    status: tuple[RuleStatus, ...]
    level: str  # the worst of the status
    stale: str = ""  # why this is the last valid plan, in the ego frame of then, and no new one
    age: float = 0.0  # s since the scene of this plan came in
    seconds: float = 0.0  # that the call took


class NoPlan(RuntimeError):
    """No valid plan was ready in time, and there is none from before."""


class Runtime:
    """An exported planner, loaded, tried on its golden pair and warm.

    provider: onnx or openvino; threads: of one graph. BadInput if the folder, or what it computes here, is not as
    exported.
    """

    def __init__(self, folder: Path | str, provider: str = "onnx", threads: int = 1, seed: int = 0) -> None:
        self.manifest: ExportManifest = read_manifest(folder)
        self.provider = provider
        wanted = [name for name in ("encoder", "step", "head") if name in self.manifest.graphs]
        self.sessions: dict[str, Session] = {
            name: open_session(self.manifest.graphs[name], ALWAYS.get(name, provider), threads) for name in wanted
        }
        self.random = np.random.default_rng(seed)
        self.last: tuple[RuntimePlan, float] | None = None
        self.check()

    def plan(
        self, scene: Arrays, noise: np.ndarray | None = None, deadline: float | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> RuntimePlan:  # fmt: skip
        """One scene (arrays without a batch axis, as the manifest lists them) -> a plan.

        noise (P, T, 4) is drawn if not given. If `deadline` seconds pass before the plan is ready, or it is not finite,
        the last valid one is given back, marked stale and with its age. NoPlan if there is none.
        """
        begin, limit = clock(), np.inf if deadline is None else deadline

        def is_late() -> bool:
            return clock() - begin > limit

        batched = {name: np.asarray(scene[name])[None] for name in self.manifest.inputs("encoder")}
        noise = self.draw_noise(1) if noise is None else np.asarray(noise, np.float32)[None]
        try:
            joint, pressures = self.run(batched, noise, is_late)
            if not np.isfinite(joint).all():
                raise NoPlan("the plan is not finite")
        except NoPlan as error:
            if self.last is None:
                raise
            plan, made = self.last
            return replace(plan, stale=str(error), age=begin - made, seconds=clock() - begin)
        named = {} if pressures is None else dict(zip(self.manifest.rules, pressures[0].tolist()))
        status = rule_statuses(joint[0], scene, named, self.manifest)
        level = max((one.level for one in status), key=("ok", "warn", "error").index, default="ok")
        plan = RuntimePlan(joint[0, 0], joint[0, 1:], named, status, level, seconds=clock() - begin)
        self.last = plan, begin
        return plan

    def run(
        self, scene: Arrays, noise: np.ndarray, is_late: Callable[[], bool] | None = None,
        geometry: Geometry | None = None,
    ) -> tuple[np.ndarray, np.ndarray | None]:  # fmt: skip
        """Scenes of B, noise (B, P, T, 4) -> trajectories (B, P, T, 4) in metres, and pressures (B, M) of the head.

        `is_late` is asked before each graph; NoPlan if it says so. `geometry` makes (B, G) of the trajectories for a
        head that looks at it; if not given, it is computed from the arrays of the scene.
        """
        _in_time(is_late)
        scene = self._given(scene)
        made = dict(zip(self.manifest.outputs("encoder"), self.sessions["encoder"](scene)))
        token = np.zeros(0)

        def denoise(x: np.ndarray, at: float) -> np.ndarray:
            nonlocal token
            _in_time(is_late)
            estimate, token = self.sessions["step"]({**made, "x": x, "time": np.full(len(x), at, np.float32)})
            return estimate

        start = np.empty((*noise.shape[:2], noise.shape[2] + 1, 4), np.float32)
        start[:, :, 1:] = np.float32(self.manifest.temperature) * noise
        joint = to_metres(solve(denoise, start, made["current"], self.manifest.schedule), self.manifest)
        if (fade := self.manifest.size.get("seam_s")) is not None:
            joint[:, 0] = close_seam(joint[:, 0], np.maximum(scene["ego_current_state"][:, VX], 0.0), float(fade))
        if "head" not in self.sessions:
            return joint, None
        _in_time(is_late)
        plan = np.ascontiguousarray(joint[:, 0])
        seen = {"trajectory": plan, "ego_current_state": scene["ego_current_state"], "ego_token": token}
        if self.manifest.geometry:
            seen["geometry"] = self._geometry(joint, scene) if geometry is None else geometry(joint)
        return joint, self.sessions["head"]({**seen, "tokens": made["tokens"], "padded": made["padded"]})[0]

    def draw_noise(self, batch: int) -> np.ndarray:
        """(B, P, T, 4) standard normal."""
        shape = (batch, self.manifest.predicted, self.manifest.horizon, 4)
        return self.random.standard_normal(shape, dtype=np.float32)

    def check(self) -> None:
        """Run the golden pair; BadInput if the answer here is another than where it was exported."""
        path = self.manifest.folder / GOLDEN
        with reading_file(path, "golden pair"):
            golden = _arrays(path)
            joint, pressures = self.run(golden, golden["noise"])
            worst = float(np.abs(joint - golden["trajectories"]).max())
            if pressures is not None:
                worst = max(worst, float(np.abs(pressures - golden["pressures"]).max()))
        if not worst <= SAME * max(1.0, float(np.abs(golden["trajectories"]).max()) / 10.0):
            raise BadInput(f"{path}: {self.provider} answers otherwise here than where it was exported, by {worst:.3g}")

    def _geometry(self, joint: np.ndarray, scene: Arrays) -> np.ndarray:
        vehicle = self.manifest.values["vehicle"]
        body = Body(*(float(vehicle[name]) for name in Body._fields))
        return cheap_geometry(joint[:, 0], scene, joint[:, 1:], body)

    def _given(self, scene: Arrays) -> dict[str, np.ndarray]:
        """What the encoder is given of B scenes: as many rows as the model sees. BadInput if there are fewer."""
        batch, given = len(scene["ego_current_state"]), {}
        for name, (dtype, shape) in self.manifest.inputs("encoder").items():
            value = np.asarray(scene[name])
            if value.ndim != 1 + len(shape) or value.shape[0] != batch or any(
                have < want for have, want in zip(value.shape[1:], shape)
            ):  # fmt: skip
                raise BadInput(f"{name} has shape {value.shape}, expected {(batch, *shape)}")
            value = value[(slice(None), *(slice(size) for size in shape))]  # rows are sorted by distance
            given[name] = np.ascontiguousarray(value, dtype=np.dtype(dtype))
        return given


def _arrays(path: Path) -> dict[str, np.ndarray]:
    """Of an .npz; ValueError before more comes out of one than a golden pair has."""
    with zipfile.ZipFile(path) as archive:
        if (total := sum(part.file_size for part in archive.infolist())) > MOST_GOLDEN:
            raise ValueError(f"it holds {total} bytes, expected at most {MOST_GOLDEN}")
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _in_time(is_late: Callable[[], bool] | None) -> None:
    if is_late is not None and is_late():
        raise NoPlan("the deadline passed before the plan was ready")
