"""How large a log may be. Files come from anywhere: what they ask for is compared with these before it is allocated.

Each limit is far above what any known data set holds, and low enough that a hostile file is refused in seconds and
within the memory of a small machine. What is measured of real logs stands beside the limit.
"""

from __future__ import annotations

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30

# files
MOST_BYTES = 512 * MIB  # of one log after decompression; real ones hold 3 MB (Waymo, nuScenes, CommonRoad)
MOST_XZ_MEMORY = 256 * MIB  # for the dictionary that an xz file asks for; `xz -9` needs 65 MB
MOST_STREAMS = 4096  # compressed streams in one file; one is usual, bgzip writes one for every 64 kB

# pickles (ScenarioNet)
MOST_PICKLE_STEPS = 8_000_000  # instructions; real logs take 30,000, and a step about a microsecond
MOST_PICKLE_DEPTH = 24  # of containers in containers; real logs have 6
MOST_PICKLE_INTEGER = 16  # bytes of one integer; numpy has none of more than 8
MOST_KEY = 1 << 60  # of an integer as a key: larger ones can be chosen so that all share one hash
MOST_DIMENSIONS = 8  # of an array; real ones have 2
MOST_TEXT_WIDTH = 4096  # characters of a text in an array

# a process that converts a log
MOST_SECONDS = 120.0  # of processor time for one scenario; real ones take 1 s, the map of a city with 10^5 pieces 60 s
