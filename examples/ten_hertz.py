"""A process that plans ten times a second without torch, as a robot's would: latency and missed deadlines.

    radp export onnx --planner radp-mini --out exported/radp-mini
    python examples/ten_hertz.py exported/radp-mini
    python examples/ten_hertz.py exported/radp-mini --seconds 10 --deadline 0.05 --scenes recorded.npz

Scenes are those of the golden pair, or of an .npz with the same arrays; they are taken in turn.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np

from radp import runtime

PERIOD = 0.1  # s


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("export", type=Path)
    parser.add_argument("--scenes", type=Path)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--deadline", type=float, default=0.08)
    parser.add_argument("--provider", default="onnx", choices=("onnx", "openvino"))
    options = parser.parse_args()
    planner = runtime.Runtime(options.export, options.provider)
    scenes = recorded(options.scenes or options.export / "golden.npz", planner)
    latencies, levels, late = [], Counter(), 0
    memory, begin = resident(), time.monotonic()
    for tick in range(round(options.seconds / PERIOD)):
        time.sleep(max(0.0, begin + tick * PERIOD - time.monotonic()))
        try:
            plan = planner.plan(scenes[tick % len(scenes)], deadline=options.deadline)
        except runtime.NoPlan:  # there is no plan from before
            late += 1
            continue
        late += bool(plan.stale)
        latencies.append(plan.seconds)
        levels[plan.level] += 1
    show(latencies, levels, late, resident() - memory)
    return 0


def recorded(path: Path, planner: runtime.Runtime) -> list[dict[str, np.ndarray]]:
    """Scenes without batch axis, as `Runtime.plan` takes them."""
    with np.load(path, allow_pickle=False) as file:
        arrays = {name: file[name] for name in planner.manifest.inputs("encoder")}
    return [{name: values[i] for name, values in arrays.items()} for i in range(len(arrays["ego_current_state"]))]


def resident() -> float:
    """Most memory that was in use so far, in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def show(latencies: list[float], levels: Counter[str], late: int, grown: float) -> None:
    shown = [f"{q} %: {1e3 * np.percentile(latencies, q):.1f} ms" for q in (50, 90, 99, 100)] if latencies else []
    print(f"{len(latencies)} plans; latency {', '.join(shown)}")
    print(f"{late} missed their deadline; levels: {', '.join(f'{name} {n}' for name, n in levels.items())}")
    print(f"memory grew by {grown:.1f} MB; torch was {'' if 'torch' in sys.modules else 'not '}imported")


if __name__ == "__main__":
    sys.exit(main())
