"""A driver on a Ray cluster, for tests that kill it or what works for it: `python -m tests.runs.ray_driver HOW OUT`.

own: a cluster of this machine, started by the engine, with pieces that raise and kill.
slow: the same with slow pieces.
nodes: two nodes on this machine; the second is killed when a piece has begun on it.
"""

from __future__ import annotations

import sys
import threading
from functools import partial
from pathlib import Path

from radp.runs.engine import Engine, use_engine
from radp.runs.json_text import json_text
from radp.runs.parallel import Outcome, parallel_map
from tests.runs.made_pieces import slow_file, slow_square, troubled, wait_until
from tests.runs.two_node_ray import two_nodes

PIECES = 8


def own(folder: Path) -> Outcome:
    return parallel_map(partial(troubled, folder), range(PIECES), workers=2, folder=folder)


def slow(folder: Path) -> Outcome:
    return parallel_map(partial(slow_square, folder, 0.5), range(PIECES), workers=2, folder=folder)


def nodes(folder: Path) -> Outcome:
    kill_second, end = two_nodes()
    seen: set[int] = set()

    def strike() -> None:
        wait_until(lambda: len({file.name.rsplit("-", 1)[1] for file in folder.glob("begun-*")}) == 2)
        kill_second()

    thread = threading.Thread(target=strike)
    thread.start()

    def count(index: int, value: None) -> None:
        assert index not in seen, "counted twice"
        seen.add(index)

    work = partial(slow_file, folder, 1.0)
    outcome = parallel_map(work, range(PIECES), workers=2, folder=folder, on_result=count)
    thread.join()
    end()
    return outcome


if __name__ == "__main__":
    with use_engine(Engine("ray")):
        found = {"own": own, "slow": slow, "nodes": nodes}[sys.argv[1]](Path(sys.argv[2]))
    failures = [[failure.piece, failure.reason] for failure in found.failures]
    print(json_text({"results": list(found.results.items()), "done": found.done, "failures": failures}, indent=None))
