"""A command on a Ray cluster of two nodes, the second of which is killed when pieces of both are done:
`python -m tests.cli.two_nodes OUT WORDS...`. The exit code is the command's, or 3 if it was over too early."""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from radp.cli.main import main
from radp.runs.journal import maps_of
from tests.runs.made_pieces import wait_until
from tests.runs.two_node_ray import two_nodes

TOO_EARLY = 3


def run(out: Path, words: list[str]) -> int:
    kill_second, end = two_nodes()
    over, killed = threading.Event(), threading.Event()

    def strike() -> None:
        wait_until(lambda: over.is_set() or any(len(found["nodes"]) == 2 for found in maps_of(out)), 3600)
        if not over.is_set():
            kill_second()
            killed.set()

    thread = threading.Thread(target=strike)
    thread.start()
    code = main(words)
    over.set()
    thread.join()
    end()
    return code if killed.is_set() else TOO_EARLY


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
