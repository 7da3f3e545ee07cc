"""radp reproduce: every result table and figure of the paper, on our benchmark."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field
from pathlib import Path

from radp.evaluation.settings import ReportScope
from radp.runs.engine import Engine


@dataclass(frozen=True, kw_only=True)
class Reproduce(ReportScope):
    """Drive, measure and draw every result table and figure of the paper, and write REPORT.md and report.html.

    Needs no data and no network: models and splits are packaged. What was interrupted goes on with the same command.

    Example:
        radp reproduce --quick --out runs/quick
        radp reproduce --out runs/paper
        radp reproduce --splits stores/val14 stores/test14-random stores/test14-hard --out runs/nuplan
    """

    out: Path
    """Folder for drives, results, figures and the report."""
    workers: int = 0
    """Processes; as many as there are processors if not given."""
    where: Engine = field(default_factory=Engine)

    def __call__(self) -> int:
        from radp.report.paper_report import reproduce_paper
        from radp.report.reproduction import chosen_setup
        from radp.runs.worker import cpu_count

        begin = time.perf_counter()
        setup = chosen_setup(self)
        markdown, page = reproduce_paper(
            setup, self.out, self.workers or cpu_count(), lambda line: print(line, file=sys.stderr, flush=True)
        )
        print(f"{markdown}\n{page.resolve().as_uri()}\n{time.perf_counter() - begin:.0f} s")
        return 0
