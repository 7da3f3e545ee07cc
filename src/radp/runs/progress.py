"""Progress with an estimate of the time left, shown only when the work takes more than two seconds."""

from __future__ import annotations

import os
import sys
import threading
import time
from types import TracebackType
from typing import ClassVar

SHOW_AFTER_S = 2.0
LINE_EVERY_S = 10.0
QUIET = "RADP_QUIET"  # in the environment of a worker: progress is shown by the process that started it


class Progress:
    """Counts pieces of work: a bar on a terminal, else a line on stderr every ten seconds in which it changed.

    A thread of its own decides when to show it, so that a long first piece is not silent. Only one is shown: what is
    counted within a piece, here or in a worker, is not.
    """

    _outermost: ClassVar[Progress | None] = None

    def __init__(self, label: str, total: int, done: int = 0) -> None:
        """`done` pieces were finished earlier (a resumed run): counted, but not in the estimate."""
        self.label, self.total = label, total
        self.done, self.failed = done, 0
        self.within = ""  # how far the piece under way is
        self._before = done
        self._begin = time.monotonic()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._show, name="progress", daemon=True)

    def __enter__(self) -> Progress:
        self._begin = time.monotonic()
        if Progress._outermost is None and not os.environ.get(QUIET):
            Progress._outermost = self
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if Progress._outermost is self:
            Progress._outermost = None
            self._stop.set()
            self._thread.join()

    def advance(self, count: int = 1, failed: int = 0) -> None:
        """`count` more pieces are over, `failed` of them failed."""
        self.within = ""
        self.done += count
        self.failed += failed

    def seconds_left(self) -> float | None:
        """At the pace so far; None until something is done."""
        fresh = self.done - self._before
        if fresh <= 0:
            return None
        return (time.monotonic() - self._begin) / fresh * (self.total - self.done)

    def line(self) -> str:
        """One line of plain text."""
        share = 100 * self.done // self.total if self.total else 100
        failed = f", {self.failed} failed" if self.failed else ""
        left = self.seconds_left()
        eta = "" if left is None else f", {clock(left)} left"
        within = f", {self.within}" if self.within else ""
        return f"{self.label}: {self.done}/{self.total} ({share}%){failed}{within}{eta}"

    def _show(self) -> None:
        if self._stop.wait(SHOW_AFTER_S):
            return
        if sys.stderr.isatty():
            self._show_bar()
        else:
            self._show_lines()

    def _show_lines(self) -> None:
        """A line at each interval in which something was done, and the first; one at the end if any was shown."""
        shown = None
        while True:
            over = self._stop.wait(LINE_EVERY_S)
            if (self.done, self.within) != shown and not (over and shown is None):
                shown = self.done, self.within
                print(self.line(), file=sys.stderr, flush=True)
            if over:
                return

    def _show_bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, TextColumn
        from rich.progress import Progress as Bar

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[rest]}"))
        with Bar(*columns, console=Console(stderr=True)) as bar:
            task = bar.add_task(self.label, total=self.total, rest="")
            while True:
                over = self._stop.wait(0.2)
                bar.update(task, completed=self.done, rest=self.line().removeprefix(f"{self.label}: "))
                if over:
                    return


def tell(within: str) -> None:
    """Say how far the piece under way is, if anybody looks: `step 40 of 150`."""
    if Progress._outermost is not None:
        Progress._outermost.within = within


def clock(seconds: float) -> str:
    """75 -> '1:15', 3700 -> '1:01:40'."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
