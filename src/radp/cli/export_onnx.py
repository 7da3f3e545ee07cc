"""radp export onnx: a planner as files for other programs."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ExportOnnx:
    """Write a diffusion planner as ONNX graphs with a manifest and one golden pair of inputs and outputs.

    Adapters are merged into the weights. The files run without torch: `radp.runtime`, or onnx:DIR as a planner.

    Example:
        radp export onnx --planner radp-mini --out exported/radp-mini
        radp simulate --planner onnx:exported/radp-mini --scenarios sumo14-val --out runs/exported
    """

    planner: str
    """Packaged model, planner folder or published .pth."""
    out: Path
    """Folder to write to."""
    loop: bool = False
    """Also write loop.onnx: encoder and all denoising calls in one graph, with the noise as an input."""
    no_head: bool = False
    """Leave the attribution head out."""

    def __call__(self) -> int:
        import shutil

        from radp.attribution.calibration import calibration_file
        from radp.attribution.online import calibration_of, own_rule_set
        from radp.model.paths import model_path
        from radp.planners.export import export_planner
        from radp.planners.learned import load_learned

        planner = load_learned(self.planner)
        levels = calibration_of(planner, self.planner)
        kappa = {} if levels is None else dict(zip(levels.rules, levels.kappa))
        about = {"kappa": kappa, "rule_set": own_rule_set(planner)}
        export_planner(planner, self.out, about, self.loop, not self.no_head)
        if levels is not None:  # the exact teacher finds them beside the manifest
            file = calibration_file(levels.rule_set)
            shutil.copyfile(model_path(self.planner) / file, self.out / file)
        size = sum(path.stat().st_size for path in self.out.iterdir())
        print(f"{planner.name} written to {self.out} ({size / 1e6:.1f} MB)")
        return 0
