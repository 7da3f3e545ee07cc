"""A worker on another machine: how it finds the driver's folders, its threads, and the compiled kernels."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from radp.runs.claim import is_marked, mark_of
from radp.runs.errors import EndOfRun
from radp.runs.files import private_folder
from radp.runs.piece import Work, node_name
from radp.runs.worker import settle

NUMBA = "NUMBA_CACHE_DIR"


@dataclass(frozen=True)
class Station:
    """What a worker must know of its driver before it can work."""

    here: Path  # the driver's working folder: names of files may be relative to it
    folder: Path | None  # of the results, if it is to be compared with the driver's
    mark: str  # of the claim on it
    threads: int
    shared: bool  # the worker is on another machine, perhaps: what it compiles is kept there

    @classmethod
    def beside(cls, work: Work, threads: int, shared: bool) -> Station:
        """For workers that live as long as this driver."""
        folder = work.folder and work.folder.resolve()
        return cls(Path.cwd(), folder, "" if folder is None else mark_of(folder), threads, shared)

    def enter(self) -> None:
        """Prepare this process; EndOfRun if results would be lost here. Call it before numba or torch is imported."""
        settle(self.threads)
        try:
            os.chdir(self.here)
        except OSError:
            raise EndOfRun(f"{node_name()} does not see the folder {self.here}: workers need a shared disk") from None
        if self.folder is not None and not is_marked(self.folder, self.mark):
            raise EndOfRun(
                f"{node_name()} does not see the folder {self.folder} as its driver does: workers need a shared disk"
            )
        if self.shared and NUMBA not in os.environ:
            os.environ[NUMBA] = str(_kernels())


def _kernels() -> Path:
    """A folder on this machine, ours alone, for compiled kernels, begun with what was compiled beside the sources.

    Kernels of another kind of processor are not taken by numba, which compiles its own then.
    """
    package = Path(__file__).resolve().parents[1]
    mark = hashlib.sha256(str(package).encode()).hexdigest()[:8]
    ours = Path(tempfile.gettempdir()) / f"radp-kernels-{os.getuid() if hasattr(os, 'getuid') else 'all'}-{mark}"
    begun = ours.exists()
    private_folder(ours)  # numba runs what it finds there
    if begun:
        return ours
    for folder in package.rglob("__pycache__"):
        source = str(folder.parent)
        place = ours / f"{folder.parent.name}_{hashlib.sha1(source.encode()).hexdigest()}"  # as numba names it
        for file in folder.glob("*.nb[ci]"):
            with suppress(OSError):
                place.mkdir(exist_ok=True)
                shutil.copy2(file, place / file.name)
    return ours
