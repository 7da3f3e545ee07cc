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

MOST_JSON_BYTES = 128 * MIB  # a value of Python takes up to 20 times as much as its text; real logs hold 3 MB
MOST_JSON_CONTAINERS = 4_000_000  # lists and objects; each takes 60 bytes and more, real logs have 100,000
MOST_JSON_VALUES = 20_000_000  # real logs have 300,000
MOST_XML_BYTES = 64 * MIB  # real logs hold 2.5 MB
MOST_XML_ELEMENTS = 2_000_000  # each takes 100 bytes and more; real logs have 100,000
MOST_XML_DEPTH = 32  # real logs have 8
MOST_TFRECORD_BYTES = 2 * GIB  # of a file of many scenarios; Waymo's hold 500 of 1 MB
MOST_RECORD_BYTES = 64 * MIB  # of one scenario
MOST_YAML_BYTES = 4 * MIB  # of a scenario filter; the largest published ones name 10,000 tokens in 200 kB

# what a log holds
MOST_FRAMES = 20_000  # half an hour at 10 Hz; data sets cut their logs to 9 s .. 20 s
MOST_TRACKS = 20_000  # a crowded log has 1,000
MOST_BOXES = 5_000_000  # tracks times frames: 200 MB of states; a crowded log has 200,000
MOST_LANES = 10_000  # around one log; a junction has 1,000
MOST_LANE_LENGTH = 20_000.0  # m; lanes end at every junction
MOST_ROAD_LENGTH = 1_000_000.0  # m of all lanes together; a square kilometre of a city has 40,000
MOST_LINE_POINTS = 20_000  # of one line; real ones have 1,000
MOST_MEETINGS = 20_000_000  # of rays and lines, or of lanes that overlap; a junction has 200,000

# what is sound: numbers that no vehicle on this planet has
MOST_COORDINATE = 2e7  # m; UTM ends at 1e7
MOST_SPEED = 300.0  # m/s; tracking noise reaches 100
MOST_SIZE = 200.0  # m; road trains and trams stay below 60
MOST_SPEED_LIMIT = 100.0  # m/s, 360 km/h
LEAST_STEP_US, MOST_STEP_US = 10_000, 1_000_000  # between frames of 0.1 s; a dropped frame or two is usual
MOST_NAME = 200  # characters of a token, a track's or a lane's id; UUIDs have 36

# databases (nuPlan)
MOST_SQL_STEPS = 500_000_000  # of sqlite's machine for one question: some ten seconds
MOST_SQL_ROWS = 2_000_000  # of one answer; an hour of boxes in a scenario's 20 s would be 1 million
MOST_SQL_VALUE = 64 * MIB  # of one text or blob; the outline of a district has 1 MB

# pickles (ScenarioNet)
MOST_PICKLE_STEPS = 8_000_000  # instructions; real logs take 30,000, and a step about a microsecond
MOST_PICKLE_DEPTH = 24  # of containers in containers; real logs have 6
MOST_PICKLE_INTEGER = 16  # bytes of one integer; numpy has none of more than 8
MOST_KEY = 1 << 60  # of an integer as a key: larger ones can be chosen so that all share one hash
MOST_DIMENSIONS = 8  # of an array; real ones have 2
MOST_TEXT_WIDTH = 4096  # characters of a text in an array

# a process that converts a log
MOST_SECONDS = 120.0  # of processor time for one scenario; real ones take 1 s, the map of a city with 10^5 pieces 60 s
