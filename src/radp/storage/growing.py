"""A store that one process adds to, shard by shard, and takes up again where another one was stopped."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from radp.runs.files import make_folder, remove_temporaries
from radp.runs.manifest import Manifest
from radp.storage.errors import StoreError

UNFINISHED = "unfinished"  # in a manifest: whatever wrote the store has not come to its end


class GrowingStore:
    """The folder of such a store, held for one writer. What the manifest lists survives a kill.

    Shards are written first, then the manifest, which is marked as unfinished until the writer has come to its end.
    """

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.path, self.manifest = path, manifest
        self._lock = _lock(make_folder(path))
        remove_temporaries(path)
        self.content: dict[str, Any] = manifest.read(path) if manifest.is_in(path) else {}
        self.unfinished = bool(self.content.get(UNFINISHED, not self.content))

    def write(self, content: Mapping[str, Any], finished: bool) -> None:
        """The manifest; what it lists must be there."""
        self.manifest.write(self.path, content if finished else {**content, UNFINISHED: True})
        self.unfinished = not finished

    def release(self) -> None:
        """Let the next writer in."""
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


def _lock(folder: Path) -> int | None:
    """Hold the folder for one writer; the lock goes with the process. None where the system has no such locks."""
    try:
        import fcntl
    except ImportError:
        return None
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(handle)
        raise StoreError(f"{folder} is being written by another process") from None
    return handle
