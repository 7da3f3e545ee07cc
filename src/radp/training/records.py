"""What a training run reports while it runs: log.jsonl, TensorBoard, and a line with the time left."""

from __future__ import annotations

import json
import sys
import time
from typing import TYPE_CHECKING

from radp.runs.folder import RunFolder
from radp.runs.json_text import json_text

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter


class Records:
    """Appends to log.jsonl; on resume, drops the lines after the checkpoint, so that no step is recorded twice."""

    def __init__(self, folder: RunFolder, first_step: int, enabled: bool = True) -> None:
        self.enabled, self.last_line = enabled, 0.0
        if not enabled:
            return
        path = folder.path / "log.jsonl"
        if path.exists():
            kept = [line for line in path.read_text(errors="replace").splitlines() if _step(line) <= first_step]
            folder.write_bytes("log.jsonl", "".join(f"{line}\n" for line in kept).encode())
        self.file = path.open("a")
        self.board = _tensorboard(folder, first_step)

    def write(self, step: int, part: str, values: dict[str, float]) -> None:
        """One line of log.jsonl and one point per value in TensorBoard."""
        if not self.enabled:
            return
        self.file.write(json_text({"step": step, "part": part, **values}, indent=None) + "\n")
        self.file.flush()
        if self.board is not None:
            for name, value in values.items():
                self.board.add_scalar(f"{part}/{name}", value, step)
        if part == "validation":
            shown = "  ".join(f"{name} {value:.4g}" for name, value in values.items())
            print(f"step {step}: {shown}", file=sys.stderr)

    def progress(self, step: int, steps: int, loss: float, steps_per_s: float) -> None:
        """A line with the time left, at most every ten seconds."""
        if not self.enabled or time.monotonic() - self.last_line < 10.0:
            return
        self.last_line = time.monotonic()
        left = (steps - step) / max(steps_per_s, 1e-9)
        print(
            f"step {step}/{steps}  loss {loss:.4f}  {steps_per_s:.2f} steps/s  {left / 60:.1f} min left",
            file=sys.stderr,
        )

    def close(self) -> None:
        if self.enabled:
            self.file.close()
            if self.board is not None:
                self.board.close()


def _step(line: str) -> float:
    try:
        return float(json.loads(line)["step"])
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return float("inf")  # a line cut short by a crash


def _tensorboard(folder: RunFolder, first_step: int) -> SummaryWriter | None:
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError:
        return None
    return SummaryWriter(str(folder.path / "tensorboard"), purge_step=first_step + 1)
