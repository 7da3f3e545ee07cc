"""Several processes on this machine that train as one, over the loopback device alone."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from typing import Any

from radp.runs.errors import BadInput

LOOPBACK, DEVICE = "127.0.0.1", "lo"


def share(function: Callable[[], Any], processes: int) -> None:
    """Call the function in each of `processes` new processes, which Accelerate then takes for one training.

    Comes back when all have ended; an error in one of them ends all and is raised here.
    """
    from torch.multiprocessing import ProcessRaisedException, spawn

    try:
        spawn(_member, (function, processes, _free_port()), nprocs=processes)
    except ProcessRaisedException as error:
        _, mark, reason = str(error).rpartition(f"{BadInput.__name__}: ")
        if not mark:
            raise
        raise BadInput(reason.strip()) from None


def _member(rank: int, function: Callable[[], Any], processes: int, port: int) -> None:
    own = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": processes, "MASTER_ADDR": LOOPBACK, "MASTER_PORT": port}
    os.environ.update({name: str(value) for name, value in own.items()}, ACCELERATE_USE_CPU="true")
    if os.path.exists(f"/sys/class/net/{DEVICE}"):  # other systems name it otherwise
        os.environ["GLOO_SOCKET_IFNAME"] = DEVICE
    function()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((LOOPBACK, 0))
        return int(probe.getsockname()[1])
