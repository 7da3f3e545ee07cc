"""radp export diffusion-planner: a planner in the published layout."""

from __future__ import annotations

from pathlib import Path


def export_diffusion_planner(planner: str, out: Path) -> int:
    """Write a planner as the published Diffusion Planner does: a .pth with args.json beside it.

    Adapters are merged into the weights. Only models of the published structure can be written; what that layout has no
    place for (the switches of the small model) is named in the refusal.

    Example:
        radp export diffusion-planner --planner runs/base/model --out exported/model.pth

    Args:
        planner: Packaged model, planner folder or .pth.
        out: File to write, ending in .pth; args.json is put beside it.
    """
    from radp.model.checkpoint import export_published
    from radp.model.paths import model_path
    from radp.planners.learned import load_planner_model
    from radp.runs.errors import BadInput

    if out.suffix != ".pth":
        raise BadInput(f"{out} does not end in .pth")
    try:
        print(export_published(load_planner_model(model_path(planner)), out))
    except ValueError as error:
        raise BadInput(f"{planner}: {error}") from None
    return 0
