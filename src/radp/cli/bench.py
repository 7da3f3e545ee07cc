"""radp bench: measure speed on this machine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from tyro.conf import Positional

from radp.runs.errors import BadInput
from radp.runs.json_text import json_text

BENCHES: dict[str, tuple[str, ...]] = {
    "sim": ("radp.bench.sim:bench_sim", "radp.bench.metrics:bench_metrics"),
    "plan": ("radp.bench.plan:bench_plan",),
    "train": ("radp.bench.model:bench_train",),
    "scene": ("radp.bench.scene:bench_scene",),
    "data": ("radp.bench.scene:bench_data",),
    "rules": ("radp.bench.rules:bench_rules",),
    "attribution": ("radp.bench.attribution:bench_attribution",),
    "convert": ("radp.bench.convert:bench_convert",),
    "engines": ("radp.bench.engines:bench_engines",),
}


@dataclass(frozen=True)
class Bench:
    """Measure how fast this machine drives, scores, plans, trains, reads scenes or converts logs.

    Example:
        radp bench sim
        radp bench plan --json
        radp bench train --preset mini --json
        radp bench attribution --planner runs/radp-mini --json
        radp bench convert --db data/nuplan --maps data/maps --json
        radp bench engines --scenarios 20 --json
    """

    what: Positional[Literal["sim", "plan", "train", "scene", "data", "rules", "attribution", "convert", "engines"]]
    """What to measure."""
    planner: str | None = None
    """Packaged model or planner folder whose attribution is measured; the packaged one if not given."""
    preset: Literal["mini", "nuplan"] | None = None
    """Size of the model that plans or trains; as published if not given."""
    db: Path | None = None
    """Logs of nuPlan, to convert."""
    maps: Path | None = None
    """Maps of nuPlan, to convert."""
    scenarios: int | None = None
    """How many are driven on each engine; 200 if not given."""
    json: bool = False
    """Print one JSON object."""

    def __call__(self) -> int:
        if self.planner is not None and self.what != "attribution":
            raise BadInput(f"radp bench {self.what} takes no planner; radp bench attribution does")
        if (self.db or self.maps) and self.what != "convert":
            raise BadInput(f"radp bench {self.what} takes no logs; radp bench convert does")
        if self.preset is not None and self.what not in ("plan", "train"):
            raise BadInput(f"radp bench {self.what} takes no preset; radp bench plan and radp bench train do")
        if self.scenarios is not None and self.what != "engines":
            raise BadInput(f"radp bench {self.what} takes no scenarios; radp bench engines does")
        given = {
            "planner": self.planner, "config": self.preset, "db": self.db, "maps": self.maps,
            "scenarios": self.scenarios,
        }  # fmt: skip
        options = {name: value for name, value in given.items() if value is not None}
        figures: dict[str, Any] = {}
        for place in BENCHES[self.what]:
            figures.update(_bench_function(place)(**options))
        print(json_text(figures) if self.json else readable(figures))
        return 0


def _bench_function(place: str) -> Callable[..., dict[str, Any]]:
    module, name = place.split(":")
    try:
        return getattr(import_module(module), name)
    except ModuleNotFoundError as error:
        if error.name is None or not module.startswith(error.name):
            raise
    except AttributeError:
        pass
    raise BadInput(f"this radp has no {module}.{name} to measure with")


def readable(figures: dict[str, Any], indent: str = "") -> str:
    """Nested figures, one per line."""
    lines = []
    for name, value in figures.items():
        if isinstance(value, dict):
            lines += [f"{indent}{name}", readable(value, indent + "  ")]
        else:
            lines.append(f"{indent}{name:<{40 - len(indent)}} {value:.4g}" if isinstance(value, float) else
                         f"{indent}{name:<{40 - len(indent)}} {value}")  # fmt: skip
    return "\n".join(lines)
