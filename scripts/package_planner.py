"""Copy a planner that `radp train planner` made into the package: python scripts/package_planner.py RUN NAME [--half].

The settings of its training go with it, but no paths. NAME becomes a name that `radp simulate --planner` knows; its
card, src/radp/zoo/models/NAME/CARD.md, is written by hand.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from radp.planners.zoo.checkpoint import folder_kind, load_folder, save_folder
from radp.runs.errors import BadInput
from radp.zoo import MODELS

KEPT = ("kind", "preset", "loop", "augment", "beside", "samples")


def package(run: Path, name: str, half: bool = False) -> Path:
    """RUN/model as MODELS/NAME; `half` keeps its weights in 16 bits."""
    folder = run / "model"
    kind = folder_kind(folder)
    if kind is None:
        raise BadInput(f"{folder} holds no planner that radp train planner made")
    settings: dict[str, Any] = json.loads((folder / "config.json").read_bytes())["training"]["settings"]
    training = {name: settings[name] for name in KEPT if name in settings}
    return save_folder(kind, load_folder(folder), MODELS / name, training, half)


if __name__ == "__main__":
    words = [word for word in sys.argv[1:] if word != "--half"]
    if len(words) != 2:
        sys.exit(__doc__)
    print(package(Path(words[0]), words[1], "--half" in sys.argv))
