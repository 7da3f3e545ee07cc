"""A plugin that says what tests cost in processor time, their child processes included, whatever else the machine does.

    pytest -p tests.processor_time -n 0 tests/evaluation

Times on the clock mislead on a busy machine; CONTRIBUTING.md gives the limits by these.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Generator
from pathlib import PurePath

import pytest

DEAREST = 25  # tests listed
COST = "processor_s"


class ProcessorTime:
    """Notes the cost of every phase in its report, which reaches the first process also from workers, and sums up."""

    def __init__(self) -> None:
        self.last = 0.0
        self.tests: Counter[str] = Counter()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, object, object]:
        self.last = spent()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        now = spent()
        report.user_properties.append((COST, now - self.last))
        self.last = now
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.tests[report.nodeid] += dict(report.user_properties).get(COST, 0.0)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        folders: Counter[str] = Counter()
        for name, cost in self.tests.items():
            folders[str(PurePath(name.partition("::")[0]).parent)] += cost
        terminalreporter.section(f"{self.tests.total():.0f} s of processor time")
        for name, cost in [*folders.most_common(), *self.tests.most_common(DEAREST)]:
            terminalreporter.write_line(f"{cost:8.2f} {name}")


def spent() -> float:
    """Seconds of processor time of this process and of its children that have ended."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def pytest_configure(config: pytest.Config) -> None:
    config.pluginmanager.register(ProcessorTime())
