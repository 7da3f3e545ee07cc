"""Exported planners in the closed loop: `onnx:DIR` is a planner like any other, run by `radp.runtime`."""

from __future__ import annotations

import hashlib
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from radp.model.config import ModelConfig
from radp.model.geometry import plan_geometry
from radp.model.sampler import noise_for
from radp.planners.diffusion import reference_for, scene_config
from radp.runs.errors import reading_file
from radp.runtime import Runtime
from radp.runtime.manifest import MANIFEST
from radp.scene.builder import build_scenes
from radp.scene.scene import Scene
from radp.sim.observation import Observation
from radp.sim.plan import Plan


class OnnxPlanner:
    """An exported planner; the noise comes from the same seeds as with torch, so that plans can be compared."""

    def __init__(self, folder: Path | str, provider: str = "onnx", name: str = "", threads: int = 1) -> None:
        folder = Path(folder)
        self.runtime = Runtime(folder, provider, threads)
        self.name = name or str(self.runtime.manifest.values.get("planner") or folder.resolve().name)
        with reading_file(folder / MANIFEST, "manifest of an exported planner"):
            self.config = ModelConfig.from_json(self.runtime.manifest.size)
            self.rule_set = str((self.runtime.manifest.values.get("head") or {}).get("rule_set", "paper"))
        self.scenes = scene_config(self.config, rules=bool(self.runtime.manifest.geometry))
        self.fingerprint = f"{provider}:{hashlib.sha256((folder / MANIFEST).read_bytes()).hexdigest()}"

    def plan(self, now: Observation) -> Plan:
        """A plan for each world."""
        return self.plan_scene(build_scenes(now, self.scenes), now.seeds)

    def plan_scene(self, scene: Scene, seeds: np.ndarray) -> Plan:
        """Plans for B scenes, built as `scenes` says, with the noise of the observation's seeds (B,)."""
        noise = noise_for([int(seed) >> 1 for seed in seeds], self.config)
        arrays = {name: getattr(scene, name).numpy() for name in self.runtime.manifest.inputs("encoder")}

        def geometry(joint: np.ndarray) -> np.ndarray:
            plans = torch.from_numpy(joint)
            return plan_geometry(self.runtime.manifest.geometry, plans[:, 0], scene, plans[:, 1:]).numpy()

        joint, pressures = self.runtime.run(arrays, noise[:, 0].numpy(), geometry=geometry)
        plans = torch.from_numpy(np.ascontiguousarray(joint))
        tracks = None if scene.agent_tracks is None else scene.agent_tracks[:, : self.config.neighbours]
        reference = reference_for(plans[:, 0], scene, self.config.reference_s)
        plan = Plan(plans[:, 0], reference=reference, predictions=plans[:, 1:], predicted_tracks=tracks)
        if pressures is None:
            return plan
        return replace(plan, pressure=torch.from_numpy(pressures), rules=self.runtime.manifest.rules)
