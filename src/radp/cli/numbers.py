"""Numbers among the options: what they may be, by their name, since a name means the same for every verb."""

from __future__ import annotations

import math
from dataclasses import fields
from typing import Any

from radp.runs.errors import BadInput

FROM_ONE = (
    "batch", "batches", "calls", "closed_loop_scenarios", "draws", "epochs", "future", "heads", "kept_states", "limit",
    "log_every", "logs_per_shard", "moments", "networks", "ordinary", "per_kind", "plans", "processes", "rank",
    "rounds", "samples", "save_every", "scenarios", "seeds", "states", "steps", "stop_after", "stride", "takeovers",
    "threads", "validate_every", "validation_batch", "validation_samples", "worst",
)  # fmt: skip
FROM_ZERO = ("decay", "frame", "history", "other_egos", "sanity", "seed", "skip", "warmup", "workers")
LEAST = dict.fromkeys(FROM_ONE, 1) | dict.fromkeys(FROM_ZERO, 0)
MOST = 2**31 - 1
MOST_SEED = 2**63 - 1


def check_numbers(settings: Any) -> None:
    """BadInput for the first number of a verb, or of settings in it, that is out of range or not finite."""
    for field in fields(settings):
        value = getattr(settings, field.name)
        name = field.name.replace("_", "-")
        if hasattr(value, "__dataclass_fields__"):
            check_numbers(value)
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(number, float) and not math.isfinite(number):
                raise BadInput(f"{name} is {number}, expected a finite number")
            if not isinstance(number, int) or isinstance(number, bool):
                continue
            least, most = LEAST.get(field.name, -MOST), MOST_SEED if field.name == "seed" else MOST
            if number < least:
                raise BadInput(f"{name} is {number}, expected at least {least}")
            if number > most:
                raise BadInput(f"{name} is {number}, expected at most {most}")
