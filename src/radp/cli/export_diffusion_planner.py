"""radp export diffusion-planner: a planner in the published layout."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class ExportDiffusionPlanner:
    """Write a planner as the published Diffusion Planner does: a .pth with args.json beside it.

    Adapters are merged into the weights. Only models of the published structure can be written; what that layout has no
    place for (the switches of the small model) is named in the refusal.

    Example:
        radp export diffusion-planner --planner runs/base/model --out exported/model.pth
    """

    planner: str
    """Packaged model, planner folder or .pth."""
    out: Path
    """File to write, ending in .pth; args.json is put beside it."""

    def __call__(self) -> int:
        from radp.model.checkpoint import export_published
        from radp.model.paths import model_path
        from radp.planners.learned import load_planner_model
        from radp.runs.errors import BadInput

        if self.out.suffix != ".pth":
            raise BadInput(f"{self.out} does not end in .pth")
        try:
            print(export_published(load_planner_model(model_path(self.planner)), self.out))
        except ValueError as error:
            raise BadInput(f"{self.planner}: {error}") from None
        return 0
