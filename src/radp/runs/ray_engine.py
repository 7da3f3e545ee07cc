"""The pieces of a map on a Ray cluster: actors that load what they need once and then take piece after piece.

A worker writes results itself (drives, shards) wherever the piece does, so that little comes back. What an actor had
under way when it or its node died is leased again; each piece is counted once, however often it was begun.
"""

from __future__ import annotations

import atexit
import os
import secrets
import shutil
import sys
import tempfile
from collections import Counter, deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from radp.runs.allowance import Allowance
from radp.runs.engine import Engine
from radp.runs.errors import BadInput, EndOfRun, one_line, require
from radp.runs.piece import DIED, MOST_DEATHS, Answer, Raised, Work, call
from radp.runs.pool import Answers, Isolated
from radp.runs.station import Station
from radp.runs.worker import cpu_count

AT_ONCE = 2  # pieces leased to an actor: one under way, one that waits
OBJECT_STORE = 512 << 20  # bytes, of a cluster that we start
MOST_STARTS = 3  # actors in a row that could not begin

QUIETLY: dict[str, Any] = {"log_to_driver": False, "logging_level": "ERROR"}
OWN_CLUSTER = {  # all of it listens on the loopback device alone, and asks for a token
    "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",
    "RAY_AUTH_MODE": "token",
}

_temporary: Path | None = None  # folder of the cluster that this process has started


class PieceActor:
    """Lives in a process of the cluster."""

    def begin(self, shared: list[Any], station: Station, allowance: Allowance | None) -> str:
        """Set up the process; a sentence if it cannot work here, else nothing.

        The function comes in a list, so that it is unpacked after the environment is set.
        """
        import ray

        try:
            station.enter()
        except EndOfRun as error:
            return str(error)
        self._node = f"{ray.get_runtime_context().get_node_id()[:8]}"
        function = ray.get(shared[0])
        self._call: Callable[[Any], Answer] = (
            (lambda piece: call(function, piece))
            if allowance is None
            else Isolated(function, station.threads, allowance).call
        )
        return ""

    def take(self, piece: Any) -> Answer:
        answer = self._call(piece)
        return Answer(answer.value, answer.seconds, f"{answer.node}/{self._node}")


def in_ray(work: Work, engine: Engine) -> Answers:
    """Join the cluster, or start one on this machine, and hand out the pieces."""
    ray = join(engine, work.workers)
    fleet = ActorFleet(ray, work, shared=_temporary is None)
    try:
        while fleet.has_more():
            fleet.lease()
            yield from fleet.collect()
    finally:
        fleet.dismiss()


class ActorFleet:
    """Actors, and which pieces they have. A piece that lost an actor is tried again with nothing queued behind it."""

    def __init__(self, ray: Any, work: Work, shared: bool) -> None:
        self.ray, self.work = ray, work
        self.kind = ray.remote(num_cpus=1, max_restarts=0, scheduling_strategy="SPREAD")(PieceActor)
        self.function = ray.put(work.function)
        self.station = Station.beside(work, 1, shared)
        self.waiting, self.suspects = deque(range(len(work.pieces))), deque[int]()
        self.starting: dict[Any, Any] = {}  # reference of `begin` -> actor
        self.running: dict[Any, tuple[Any, int]] = {}  # reference of `take` -> actor, position of the piece
        self.load: Counter[Any] = Counter()  # actor -> pieces that it has
        self.ready: set[Any] = set()
        self.alone: set[Any] = set()  # actors that have a suspect
        self.deaths: Counter[int] = Counter()
        self.failed_starts = 0

    def has_more(self) -> bool:
        return bool(self.waiting or self.suspects or self.running)

    def lease(self) -> None:
        """Start actors that are wanted; give each that is ready a second piece while the first is under way."""
        left = len(self.waiting) + len(self.suspects) + len(self.running)
        for _ in range(min(self.work.workers, left) - len(self.ready) - len(self.starting)):
            actor = self.kind.remote()
            begun = actor.begin.remote([self.function], self.station, self.work.allowance)
            self.starting[begun] = actor
        for actor in sorted(self.ready, key=lambda actor: self.load[actor]):
            if self.suspects and not self.load[actor]:
                self.alone.add(actor)
                self._give(actor, self.suspects.popleft())
        for depth in range(1, AT_ONCE + 1):  # every actor has one before any has two
            for actor in self.ready - self.alone:
                if self.waiting and self.load[actor] < depth:
                    self._give(actor, self.waiting.popleft())

    def _give(self, actor: Any, index: int) -> None:
        self.running[actor.take.remote(self.work.pieces[index])] = actor, index
        self.load[actor] += 1

    def collect(self) -> Answers:
        """Wait for something to happen; the answers that have come."""
        over, _ = self.ray.wait([*self.running, *self.starting], num_returns=1)
        for reference in over:
            if reference in self.starting:
                self._begun(reference)
            else:
                yield from self._answered(reference)

    def _begun(self, reference: Any) -> None:
        actor = self.starting.pop(reference)
        try:
            refused = self.ray.get(reference)
        except self.ray.exceptions.RayError as error:
            self.failed_starts += 1
            if self.failed_starts >= MOST_STARTS:
                raise BadInput(f"no worker could begin on the Ray cluster: {one_line(error, 300)}") from None
            return
        if refused:
            raise EndOfRun(refused)
        self.failed_starts = 0
        self.ready.add(actor)

    def _answered(self, reference: Any) -> Answers:
        actor, index = self.running.pop(reference)
        self.load[actor] -= 1
        try:
            answer = self.ray.get(reference)
        except self.ray.exceptions.RayTaskError as error:  # the piece or its result could not be pickled
            answer = Answer(Raised(one_line(error.cause if hasattr(error, "cause") else error, 300)))
        except self.ray.exceptions.RayError:  # the actor, its node, or what it sent is lost
            self._bury(actor)
            self.deaths[index] += 1
            if self.deaths[index] < MOST_DEATHS:
                self.suspects.append(index)
                return
            answer = Answer(Raised(DIED))
        self.alone.discard(actor)
        yield index, answer

    def _bury(self, actor: Any) -> None:
        self.ready.discard(actor)
        self.alone.discard(actor)
        with suppress(Exception):
            self.ray.kill(actor)

    def dismiss(self) -> None:
        for actor in [*self.ready, *self.starting.values()]:
            with suppress(Exception):
                self.ray.kill(actor)


def join(engine: Engine, workers: int) -> Any:
    """The module `ray`, connected: to the named cluster, to that of this process, or to a new one on this machine."""
    address = engine.ray_address or os.environ.get("RAY_ADDRESS")
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    if address is None and "ray" not in sys.modules:  # it reads these once; imported by others, it keeps its own ways
        os.environ.update(OWN_CLUSTER)
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))
    ray = require("ray", "ray")
    if ray.is_initialized():
        return ray
    try:
        if address is not None:
            ray.init(address=address, **QUIETLY)
        else:
            _start(ray, max(workers, cpu_count()))
    except Exception as error:  # Ray has no kind of its own for this
        where = address or "of this machine"
        raise BadInput(f"the Ray cluster {where} cannot be joined ({one_line(error, 300)})") from None
    return ray


def _start(ray: Any, processors: int) -> None:
    """A cluster of this machine. Ray gives it 30 s, which on a busy machine is not enough at times."""
    global _temporary
    atexit.register(leave)
    for last in (False, False, True):
        short = "/tmp" if os.access("/tmp", os.W_OK) else None  # names of sockets have 107 bytes at most
        _temporary = Path(tempfile.mkdtemp(prefix="radp-", dir=short))
        try:
            ray.init(
                num_cpus=processors, include_dashboard=False, dashboard_host="127.0.0.1", _temp_dir=str(_temporary),
                object_store_memory=OBJECT_STORE, **QUIETLY,
            )  # fmt: skip
            return
        except Exception:
            leave()
            if last:
                raise


def leave() -> None:
    """Stop the cluster that this process has started."""
    global _temporary
    if _temporary is not None:
        import ray

        ray.shutdown()
        shutil.rmtree(_temporary, ignore_errors=True)
        _temporary = None
