"""Children that read mutated files, one after the other: what they say, and how they die."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tests.fuzz.child import MOST_SECONDS
from tests.fuzz.targets import write_seeds

SILENCE = 30 * MOST_SECONDS  # on the clock, after which a child that says nothing hangs


@dataclass
class Report:
    """Counts of outcomes, and a line for each finding."""

    outcomes: Counter[str] = field(default_factory=Counter)
    by_target: Counter[str] = field(default_factory=Counter)
    findings: list[str] = field(default_factory=list)
    show: bool = False

    def add(self, begun: str, outcome: str) -> None:
        self.by_target[begun.split()[1]] += 1
        self.outcomes[outcome if outcome in ("read", "refused") else "findings"] += 1
        if outcome not in ("read", "refused"):
            self.findings.append(f"input {begun}: {outcome}")
            if self.show:
                print(self.findings[-1], flush=True)

    def summary(self) -> str:
        total = sum(self.by_target.values())
        kinds = ", ".join(f"{self.outcomes[kind]} {kind}" for kind in ("refused", "read", "findings"))
        return f"fuzz: {total} inputs for {len(self.by_target)} readers: {kinds}"


def run(
    folder: Path, seed: int, first: int, last: int, targets: Sequence[str] = (), workers: int = 1, show: bool = False
) -> Report:
    """Inputs first..last-1; a child that dies is replaced by one that goes on behind the input that killed it."""
    report = Report(show=show)
    edges = [first + (last - first) * k // workers for k in range(workers + 1)]
    places = [folder, *(folder.with_name(f"{folder.name}-{k}") for k in range(1, workers))]
    threads = []
    for place, begin, end in zip(places, edges, edges[1:]):
        if place != folder:
            shutil.copytree(folder, place)
        threads.append(threading.Thread(target=_stretch, args=(place, seed, begin, end, targets, report, show)))
        threads[-1].start()
    for thread in threads:
        thread.join()
    for place in places[1:]:
        shutil.rmtree(place, ignore_errors=True)
    return report


def _stretch(
    folder: Path, seed: int, first: int, last: int, targets: Sequence[str], report: Report, show: bool
) -> None:
    while first < last:
        first = _one_child(folder, seed, first, last, targets, report, show)


def _one_child(
    folder: Path, seed: int, first: int, last: int, targets: Sequence[str], report: Report, show: bool
) -> int:
    command = [sys.executable, "-m", "tests.fuzz.child", str(folder), str(seed), str(first), str(last), *targets]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, env={**os.environ, "OMP_NUM_THREADS": "1"})
    assert child.stdout is not None
    begun, number = "", first
    alarm = threading.Timer(SILENCE, child.kill)
    alarm.start()
    for line in child.stdout:
        alarm.cancel()
        alarm = threading.Timer(SILENCE, child.kill)
        alarm.start()
        if line.startswith("> "):
            begun, number = line[2:].strip(), int(line.split()[1])
        elif line.startswith("= ") and begun:
            report.add(begun, line[2:].strip())
            begun = ""
            if show and sum(report.by_target.values()) % 500 == 0:
                print(report.summary(), flush=True)
    code = child.wait()
    alarm.cancel()
    if begun:
        report.add(begun, _death(code))
        _restore(folder)
        return number + 1
    if code:
        report.findings.append(f"a child ended with code {code} before an input")
    return last


def _death(code: int) -> str:
    if code == -signal.SIGPROF or code == -signal.SIGKILL:
        return "hang, or out of memory"
    return f"crash ({signal.Signals(-code).name})" if code < 0 else f"exit with code {code}"


def _restore(folder: Path) -> None:
    """A child that died left its mutated file behind."""
    shutil.rmtree(folder)
    folder.mkdir()
    write_seeds(folder)
