"""Drives that the studio makes in the background, beside the questions that it goes on answering."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from radp.runs.errors import BadInput, sentence
from radp.scenario import Scenario
from radp.sim.observation import Observation
from radp.sim.plan import Plan
from radp.sim.planner import Planner, start_planner

KEPT = 4  # jobs, the last ones


class DriveStopped(BaseException):
    """A drive that nobody wants any more; not an Exception, which would count as a failure of the planner."""


class CountedPlanner:
    """A planner that computes alone, reports after each step, and stops when it is asked to."""

    def __init__(self, planner: Planner, lock: threading.RLock, step: Callable[[], None]) -> None:
        self.planner, self.lock, self.step, self.name = planner, lock, step, planner.name

    def start(self, scenarios: Sequence[Scenario]) -> None:
        start_planner(self.planner, scenarios)

    def plan(self, observation: Observation) -> Plan:
        self.step()
        with self.lock:
            return self.planner.plan(observation)


class DriveJob:
    """Work in a thread of its own: how far it is, and what came out of it."""

    def __init__(self, total: int, work: Callable[[DriveJob], Any]) -> None:
        self.total, self.done = total, 0
        self.result: Any = None
        self.error: str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, args=(work,), name="drive", daemon=True)
        self._thread.start()

    def step(self) -> None:
        """Called before each step of the work."""
        if self._stop.is_set():
            raise DriveStopped
        self.done += 1

    def stop(self) -> None:
        self._stop.set()

    def wait(self, seconds: float) -> None:
        self._thread.join(seconds)

    def state(self) -> dict[str, Any]:
        """JSON-ready."""
        over = not self._thread.is_alive()
        return {"done": self.done, "total": self.total, "over": over, "error": self.error, "result": self.result}

    def _run(self, work: Callable[[DriveJob], Any]) -> None:
        try:
            self.result = work(self)
        except DriveStopped:
            self.error = "stopped"
        except Exception as error:
            self.error = sentence(error)


class DriveJobs:
    """The last few jobs by number; a new one stops those that still run."""

    def __init__(self) -> None:
        self._jobs: dict[int, DriveJob] = {}
        self._next = 0
        self._lock = threading.Lock()

    def begin(self, total: int, work: Callable[[DriveJob], Any]) -> int:
        with self._lock:
            self.stop_all()
            self._next += 1
            self._jobs[self._next] = DriveJob(total, work)
            for old in [number for number in self._jobs if number <= self._next - KEPT]:
                del self._jobs[old]
            return self._next

    def get(self, number: int) -> DriveJob:
        if number not in self._jobs:
            raise BadInput(f"no drive {number}")
        return self._jobs[number]

    def stop_all(self) -> None:
        for job in self._jobs.values():
            job.stop()

    def close(self, patience: float = 30.0) -> None:
        """Stop everything and wait until it has stopped: a process must not end while another thread computes."""
        self.stop_all()
        for job in self._jobs.values():
            job.wait(patience)
