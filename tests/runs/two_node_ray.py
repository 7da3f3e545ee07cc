"""A Ray cluster of two nodes on this machine, one processor each."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any

HEAD = {"num_cpus": 1, "include_dashboard": False}
TRIES = 4  # Ray gives a node 30 s to start, which on a busy machine is not enough at times


def two_nodes() -> tuple[Callable[[], None], Callable[[], None]]:
    """Started and joined by this process: a call that kills the second node, and one that ends the cluster."""
    os.environ.update(RAY_USAGE_STATS_ENABLED="0", RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER="0")
    os.environ.update(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=secrets.token_hex(32))
    import ray
    from ray.cluster_utils import Cluster

    cluster = _patiently(lambda: Cluster(True, head_node_args=HEAD))
    second = _patiently(lambda: cluster.add_node(num_cpus=1))
    ray.init(address=cluster.address, log_to_driver=False)

    def end() -> None:
        ray.shutdown()
        cluster.shutdown()

    return lambda: cluster.remove_node(second, allow_graceful=False), end


def _patiently(start: Callable[[], Any]) -> Any:
    for _ in range(TRIES - 1):
        with suppress(Exception):  # Ray has no kind of its own for this
            return start()
    return start()
