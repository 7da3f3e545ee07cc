"""A SLURM cluster of two nodes on this machine, on the loopback device alone: Debian's slurm-wlm and munge."""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.runs.made_pieces import wait_until

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "sinfo")
SETTINGS = """
ClusterName=two
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={port}
CommunicationParameters=NoCtldInAddrAny,NoInAddrAny
AuthType=auth/munge
AuthInfo=socket={folder}/munge.sock
SlurmUser=root
SlurmdUser=root
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/%n
SlurmctldPidFile={folder}/ctld.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/ctld.log
SlurmdLogFile={folder}/%n.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
ReturnToService=2
JobRequeue=1
SlurmdTimeout=30
MpiDefault=none
NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={port1} CPUs=1 RealMemory=1000
NodeName=node2 NodeHostname={host} NodeAddr=127.0.0.1 Port={port2} CPUs=1 RealMemory=1000
PartitionName=main Nodes=node1,node2 Default=YES MaxTime=INFINITE State=UP
"""


def why_not() -> str:
    """Why it cannot be brought up here; empty if it can."""
    missing = [program for program in PROGRAMS if shutil.which(program) is None]
    if missing:
        return f"no {missing[0]}: apt-get install slurm-wlm munge"
    return "" if os.getuid() == 0 else "only root may start it"


@contextmanager
def two_nodes(folder: Path) -> Iterator[dict[str, str]]:
    """The cluster; gives the environment for those who use it."""
    ports = [_free_port() for _ in range(3)]
    conf, host = folder / "slurm.conf", socket.gethostname().partition(".")[0]
    words = {"host": host, "folder": folder, "port": ports[0], "port1": ports[1], "port2": ports[2]}
    conf.write_text(SETTINGS.format(**words))
    folder.chmod(0o700)
    for name in ("state", "node1", "node2"):
        (folder / name).mkdir()
    key = folder / "key"
    key.write_bytes(secrets.token_bytes(64))
    key.chmod(0o400)
    files = {name: folder / f"munge.{name}" for name in ("socket", "pid", "log", "seed")}
    options = [f"--{name}-file={file}" for name, file in files.items() if name != "socket"]
    environment = {**os.environ, "SLURM_CONF": str(conf)}
    try:
        subprocess.run(
            ["munged", "--force", f"--key-file={key}", f"--socket={folder}/munge.sock", *options], check=True
        )
        subprocess.run(["slurmctld", "-f", conf], env=environment, check=True)
        for name in ("node1", "node2"):
            subprocess.run(["slurmd", "-f", conf, "-N", name], env=environment, check=True)
        wait_until(lambda: states(environment) == {"idle"}, 60)
        yield environment
    finally:
        with suppress(AssertionError):
            subprocess.run(["scancel", "--user", "root"], env=environment, capture_output=True)
            wait_until(lambda: not _queue(environment), 60)
        for file in (folder / "node1.pid", folder / "node2.pid", folder / "ctld.pid", files["pid"]):
            with suppress(OSError, ValueError):
                daemon = int(file.read_text())
                os.kill(daemon, signal.SIGTERM)
                wait_until(lambda daemon=daemon: not _command(daemon), 60)


def _queue(environment: dict[str, str]) -> str:
    return subprocess.run(["squeue", "-h"], env=environment, capture_output=True, text=True).stdout.strip()


def states(environment: dict[str, str]) -> set[str]:
    asked = subprocess.run(["sinfo", "-h", "-o", "%T"], env=environment, capture_output=True, text=True)
    return set(asked.stdout.split())


def kill_node(folder: Path, name: str) -> None:
    """The daemon of a node and all that runs on it, those who could report the end of a job first."""
    daemon, jobs = int((folder / f"{name}.pid").read_text()), _processes_of(folder, name)
    keepers = {parent for parent in map(_parent, jobs) if "slurmstepd" in _command(parent)}
    for process in [daemon, *keepers, *jobs]:
        with suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def _processes_of(folder: Path, name: str) -> list[int]:
    """What jobs of this cluster run on the node."""
    marks = {f"SLURMD_NODENAME={name}".encode(), f"SLURM_CONF={folder}/slurm.conf".encode()}
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if marks <= set((place / "environ").read_bytes().split(b"\0")):
                found.append(int(place.name))
    return found


def _parent(process: int) -> int:
    try:
        return int(Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def _command(process: int) -> str:
    try:
        return Path(f"/proc/{process}/cmdline").read_text(errors="replace")
    except OSError:
        return ""


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])
