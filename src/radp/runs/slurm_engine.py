"""The pieces of a map as an array of SLURM jobs: each job has its share of the pieces and a ledger of its own.

    OUT/.radp/jobs/KEY/work.pkl         function and pieces, for all jobs
    OUT/.radp/jobs/KEY/jobs.jsonl       ids of the jobs
    OUT/.radp/jobs/KEY/shard-00000.jsonl   what the job has begun and ended
    OUT/.radp/jobs/KEY/results/         results of pieces that are wanted by the driver

The driver reads the ledgers. Jobs outlive him: the same command waits for those of an earlier one, then fills the
holes. Who may write to the folder could have its files run, so it is the user's alone, and refused otherwise.
"""

from __future__ import annotations

import hashlib
import json
import pickle
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from radp.runs.claim import BOOKS, JOBS
from radp.runs.engine import Engine
from radp.runs.errors import BadInput, EndOfRun, LostWrite, one_line, require
from radp.runs.files import file_stem, private_folder, short_stem, write_atomically
from radp.runs.ledger import JsonLines
from radp.runs.piece import DIED, MOST_DEATHS, Answer, Raised, Work
from radp.runs.pool import Answers
from radp.runs.slurm_job import ShardJob, ledger_of
from radp.runs.station import Station
from radp.runs.worker import cpu_count

POLL_S, ASK_S = 0.2, 5.0  # looking into the ledgers; asking SLURM which jobs are left
MINUTES = 24 * 60  # of a job, if nothing else is said
MOST_REQUEUES = 100
OVER = {"COMPLETED", "CANCELLED", "FAILED", "TIMEOUT", "NODE_FAIL", "BOOT_FAIL", "OUT_OF_MEMORY", "DEADLINE"}
ENDS = {kind.__name__: kind for kind in (EndOfRun, LostWrite)}


def in_slurm(work: Work, engine: Engine) -> Answers:
    """Submit, read the ledgers as they grow, submit again what is missing when all jobs are over."""
    assert work.folder is not None, "jobs need a folder to meet in"
    books = private_folder(work.folder.resolve() / BOOKS / JOBS)
    place = private_folder(books / hashlib.sha256(pickle.dumps(work.function)).hexdigest()[:16])
    for old in place.glob("shard-*.jsonl"):
        old.unlink()
    left = set(range(len(work.pieces)))
    for index in sorted(left):
        if (kept := result_of(place, work, index)).exists():  # of an earlier driver
            left.discard(index)
            yield index, Answer(pickle.loads(kept.read_bytes()))
    if left:
        yield from _by_jobs(work, engine, place, left)
    shutil.rmtree(place, ignore_errors=True)
    with suppress(OSError):
        books.rmdir()


def _by_jobs(work: Work, engine: Engine, place: Path, left: set[int]) -> Answers:
    shares = dealt({index: work.name(work.pieces[index]) for index in left}, work.workers)
    threads = 1 if engine.name == "slurm" else max(1, cpu_count() // len(shares))
    # who can read work.pkl sees the folder; jobs that still wait when their driver dies shall work all the same
    station = Station(Path.cwd(), None, "", threads, engine.name == "slurm")
    payload = {index: (result_of(place, work, index), work.pieces[index]) for index in left}
    write_atomically(place / "work.pkl", pickle.dumps((work.function, payload, station, work.allowance)))
    ledgers = [LedgerTail(ledger_of(place, shard)) for shard in range(len(shares))]
    while left:
        jobs = Jobs.submit(engine, place, {i: s for i, s in enumerate(shares) if left.intersection(s)})
        heard = False
        try:
            while True:
                over = not jobs.are_left()
                for row in (row for ledger in ledgers for row in ledger.new_rows()):
                    heard = True
                    if "ended" in row and row["ended"] in left:
                        left.discard(row["ended"])
                        yield row["ended"], _answer(payload[row["ended"]][0], row)
                if over or not left:
                    break
                time.sleep(POLL_S)
        except BaseException:
            jobs.cancel()
            raise
        killers = [index for ledger in ledgers for index, deaths in ledger.deaths.items() if deaths >= MOST_DEATHS]
        for index in left.intersection(killers):
            left.discard(index)
            yield index, Answer(Raised(DIED))
        if not heard:
            raise BadInput(f"the jobs ended before a piece was begun: {jobs.last_words()} (logs in {place / 'log'})")


def dealt(names: dict[int, str], shards: int) -> list[list[int]]:
    """Positions of pieces for each shard, by the hash of their names: dealt in turn in the order of the hashes, so that
    no shard has more than one piece above another."""
    order = sorted(names, key=lambda index: (hashlib.sha256(names[index].encode()).digest(), index))
    count = max(1, min(shards, len(order)))
    return [order[shard::count] for shard in range(count)]


def result_of(place: Path, work: Work, index: int) -> Path:
    """Where the result of a piece is kept; pieces of the same name get different files."""
    piece = work.pieces[index]
    mark, name = hashlib.sha256(pickle.dumps(piece)).hexdigest()[:12], work.name(piece)
    return place / "results" / short_stem(f"{mark}-{file_stem(name)}", name)


def _answer(result: Path, row: dict[str, Any]) -> Answer:
    value: Any = None
    if "reason" in row:
        end = row.get("end")
        value = Raised(row["reason"], row.get("detail", ""), None if end is None else ENDS.get(end, EndOfRun))
    elif row.get("kept"):
        value = pickle.loads(result.read_bytes())
    return Answer(value, float(row.get("seconds", 0.0)), str(row.get("node", "")))


class LedgerTail:
    """A ledger that a job is writing; `deaths`: pieces that were begun and not ended, with how often."""

    def __init__(self, file: Path) -> None:
        self.file, self.deaths = file, dict[int, int]()
        self._read = 0

    def new_rows(self) -> Iterator[dict[str, Any]]:
        """Whole lines that have come since the last call. Opened each time: so are changes seen on a shared disk."""
        try:
            with open(self.file, "rb") as file:
                file.seek(self._read)
                text = file.read()
        except FileNotFoundError:
            return
        lines = text.split(b"\n")[:-1]
        self._read += sum(len(line) + 1 for line in lines)
        for line in lines:
            with suppress(ValueError):
                row = json.loads(line)
                self._count(row)
                yield row

    def _count(self, row: dict[str, Any]) -> None:
        if "begun" in row:
            self.deaths[row["begun"]] = self.deaths.get(row["begun"], 0) + 1
        elif "pardoned" in row:  # the job was put back into the queue, by no fault of the piece
            self.deaths[row["pardoned"]] -= 1
        elif "ended" in row:
            self.deaths.pop(row["ended"], None)


def parameters(engine: Engine, place: Path, shards: int) -> dict[str, Any]:
    """What submitit gets for sbatch; names that it does not know go to sbatch as they are."""
    from submitit.slurm.slurm import _get_default_parameters

    known, given = set(_get_default_parameters()), {"time": MINUTES, "cpus_per_task": 1}
    more: dict[str, Any] = {"requeue": True}
    for word in engine.slurm:
        name, equals, value = word.lstrip("-").partition("=")
        plain = name.replace("-", "_")
        if not equals and plain not in known:
            more[name] = True
        elif plain in ("time", "nodes", "cpus_per_task", "signal_delay_s", "array_parallelism"):
            if not value.isdigit():
                raise BadInput(f"slurm {name} is {value!r}, expected a whole number (time in minutes)")
            given[plain] = int(value)
        elif plain in known:
            given[plain] = value  # type: ignore[assignment]
        else:
            more[name] = value
    return {"array_parallelism": shards, **given, "job_name": job_name(place), "additional_parameters": more}


def script(engine: Engine, out: Path, shards: int) -> str:
    """What sbatch would get for so many shards."""
    require("submitit", "slurm")
    from submitit.slurm.slurm import _make_sbatch_string

    place = Path(out).resolve() / BOOKS / JOBS / "KEY"
    folder = place / "log"
    command = f"{sys.executable} -u -m submitit.core._submit {folder}"
    count = shards if shards > 1 else None
    return _make_sbatch_string(command, folder, map_count=count, **parameters(engine, place, shards))


class Jobs:
    """The jobs of one submission. SLURM knows them by their name, which is on record before they are submitted; the
    processes that stand for them here are on record one by one."""

    def __init__(self, place: Path, cluster: str, processes: Sequence[str] = (), jobs: Sequence[Any] = ()) -> None:
        self.place, self.cluster, self.processes, self.jobs = place, cluster, processes, jobs
        self._asked, self._left = 0.0, True

    @classmethod
    def submit(cls, engine: Engine, place: Path, shares: dict[int, list[int]]) -> Jobs:
        submitit = require("submitit", "slurm")
        local, ledger = engine.name == "slurm-local", JsonLines(place / "jobs.jsonl")
        pieces, jobs = [ShardJob(place, shard, share) for shard, share in shares.items()], []
        try:
            executor = (submitit.LocalExecutor if local else submitit.SlurmExecutor)(
                place / "log", max_num_timeout=MOST_REQUEUES
            )
            executor.update_parameters(
                **({"timeout_min": MINUTES} if local else parameters(engine, place, len(shares)))
            )
            if local:
                for piece in pieces:
                    jobs.append(executor.submit(piece))
                    ledger.append(cluster="local", process=jobs[-1].job_id)
            else:
                ledger.append(cluster="slurm", process=job_name(place))
                with executor.batch():
                    jobs = [executor.submit(piece) for piece in pieces]
        except (RuntimeError, OSError, submitit.core.utils.FailedJobError) as error:
            why = one_line(error, 300)
            raise BadInput(f"SLURM does not take the jobs ({why}); --engine slurm-local needs none") from None
        return cls(place, "local" if local else "slurm", (), jobs)

    def are_left(self) -> bool:
        """Whether one of them waits or runs."""
        if self.cluster == "local":
            gone = [job for job in self.jobs if job.done()]
            return len(gone) < len(self.jobs) or any(_is_ours(int(pid), self.place) for pid in self.processes)
        if self._left and time.monotonic() - self._asked > ASK_S:
            self._asked = time.monotonic()
            self._left = _in_queue(job_name(self.place))
        return self._left

    def cancel(self) -> None:
        for job in self.jobs:
            with suppress(Exception):
                job.cancel(check=False)
        if self.cluster == "local":
            for job in self.jobs:
                with suppress(Exception):
                    job._process.wait(timeout=10)

    def last_words(self) -> str:
        """The last line that one of them said."""
        for job in self.jobs:
            with suppress(OSError):
                if text := job.paths.stderr.read_text(errors="replace").strip():
                    return one_line(text.splitlines()[-1], 300)
        return "they said nothing"


def _is_ours(pid: int, place: Path) -> bool:
    """Whether the process is a job of this folder: ids are used again."""
    try:
        return str(place).encode() in Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return False


def job_name(place: Path) -> str:
    """The jobs of a folder have a name of their own."""
    return f"radp-{hashlib.sha256(str(place).encode()).hexdigest()[:12]}"


def _in_queue(name: str) -> bool:
    """Whether SLURM knows jobs of this name as waiting or running; accounting need not be set up. If it cannot be asked
    they count as left: submitting twice would be worse than waiting."""
    asked = subprocess.run(["squeue", "-h", "-n", name, "-o", "%T"], capture_output=True, text=True)
    return bool(asked.returncode or set(asked.stdout.split()) - OVER)


def wait_for_leftovers(books: Path) -> None:
    """Wait for jobs that a driver before us has submitted and not seen to the end."""
    for place in (path for path in sorted(books.iterdir()) if (path / "jobs.jsonl").exists()):
        rows = JsonLines(place / "jobs.jsonl", "cluster", "process").rows()
        local = Jobs(place, "local", [row["process"] for row in rows if row["cluster"] == "local"])
        queued = [Jobs(place, "slurm")] if any(row["cluster"] == "slurm" for row in rows) else []
        if any(jobs.are_left() for jobs in (local, *queued)):
            print(f"radp: waiting for jobs of an earlier command on this folder ({job_name(place)})", file=sys.stderr)
        while any(jobs.are_left() for jobs in (local, *queued)):
            time.sleep(POLL_S)
        if not (place / "results").exists():  # what they made is in the stores
            shutil.rmtree(place, ignore_errors=True)
    with suppress(OSError):
        books.rmdir()
