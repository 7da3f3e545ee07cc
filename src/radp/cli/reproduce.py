"""radp reproduce: every result table and figure of the paper, on our benchmark."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from radp.runs.engine import Engine
from radp.runs.errors import BadInput


@dataclass(frozen=True)
class Reproduce:
    """Drive, measure and draw every result table and figure of the paper, and write REPORT.md and report.html.

    Needs no data and no network: models and splits are packaged. What was interrupted goes on with the same command.

    Example:
        radp reproduce --quick --out runs/quick
        radp reproduce --out runs/paper
        radp reproduce --splits stores/val14 stores/test14-random stores/test14-hard --out runs/nuplan
    """

    out: Path
    """Folder for drives, results, figures and the report."""
    quick: bool = False
    """Only a few scenarios of each split; every table says so."""
    splits: tuple[str, ...] = ()
    """Packaged splits or stores, the hardest last; sumo14 if not given."""
    base: str = ""
    """The planner to start from; the packaged one if not given."""
    ours: str = ""
    """The rule-aligned planner; the packaged one if not given."""
    scenarios: int | None = None
    """At most this many scenarios of each split, spread evenly over it."""
    workers: int = 0
    """Processes; as many as there are processors if not given."""
    where: Engine = field(default_factory=Engine)

    def __call__(self) -> int:
        from radp.report.paper_report import reproduce_paper
        from radp.report.reproduction import default_setup
        from radp.runs.worker import cpu_count

        if self.scenarios is not None and self.scenarios < 1:
            raise BadInput(f"scenarios is {self.scenarios}, expected at least 1")
        begin = time.perf_counter()
        setup = default_setup(self.quick, self.splits, self.base, self.ours, self.scenarios)
        markdown, page = reproduce_paper(
            setup, self.out, self.workers or cpu_count(), lambda line: print(line, file=sys.stderr, flush=True)
        )
        print(f"{markdown}\n{page.resolve().as_uri()}\n{time.perf_counter() - begin:.0f} s")
        return 0
