"""The frames of a scenario: 10 Hz out of the log's 20 Hz, from 3 s before the tag on, with 2 s of history."""

from __future__ import annotations

import numpy as np

from radp.sources.nuplan.log_db import UNTAGGED, LogDb, LogFrames, Pick

STRIDE = 2  # frames of the log per frame of a scenario
HISTORY = 20  # frames of a scenario before its start
BEFORE_US = 3_000_000  # more than the history is long
TAGGED = (-3_000_000, 15_000_000)  # us: start from the tag, and length
OTHERS = (0, 20_000_000)


def window_of(pick: Pick) -> tuple[int, int]:
    """First and last time [us] of a scenario."""
    offset, length = OTHERS if pick.kind == UNTAGGED else TAGGED
    return pick.time_us + offset, pick.time_us + offset + length


def drive_frames(log: LogDb, pick: Pick) -> LogFrames:
    """The frames from the start to the end of the drive."""
    found = log.frames(*window_of(pick))
    return found.take(np.arange(0, len(found.tokens), STRIDE))


def frames_with_history(log: LogDb, pick: Pick) -> tuple[LogFrames, int]:
    """The frames of the drive behind up to 20 frames of history, and the number of the latter."""
    first, last = window_of(pick)
    found = log.frames(first - BEFORE_US, last)
    begin = int(np.searchsorted(found.time_us, first))
    start = min(HISTORY, begin // STRIDE)
    return found.take(np.arange(begin - STRIDE * start, len(found.tokens), STRIDE)), start
