"""How large a log may be. Files come from anywhere: what they ask for is compared with these before it is allocated.

Each limit lies far above what the logs of the known data sets hold, and low enough that a hostile file is refused in
seconds and within the memory of a small machine. Behind "largest" stands what was measured in the logs that the tests
read: Waymo Open Motion, nuScenes, Argoverse 2, CommonRoad. Limits of JSON and .npz: `radp.storage.unpacking`.
"""

from __future__ import annotations

MIB, GIB = 1 << 20, 1 << 30

# files
MOST_BYTES = 512 * MIB  # of one log after decompression; largest: 2.7 MB
MOST_XZ_MEMORY = 256 * MIB  # for the dictionary that an xz file asks for; `xz -9` needs 65 MB
MOST_XML_BYTES = 64 * MIB  # largest: 2.4 MB
MOST_XML_ELEMENTS = 2_000_000  # 100 bytes and more each; largest: 60,000
MOST_XML_DEPTH = 32  # largest: 7
MOST_TFRECORD_BYTES = 2 * GIB  # of a file of many scenarios
MOST_RECORD_BYTES = 64 * MIB  # of one scenario
MOST_YAML_BYTES = 4 * MIB  # of a scenario filter: 100,000 tokens

# what a log holds
MOST_FRAMES = 20_000  # half an hour at 10 Hz; largest: 201
MOST_TRACKS = 20_000  # largest: 226
MOST_BOXES = 5_000_000  # tracks times frames: 200 MB of states; largest: 43,000
MOST_LANES = 10_000  # around one log; largest: 410
MOST_LANE_LENGTH = 20_000.0  # m; lanes end at every junction
MOST_ROAD_LENGTH = 1_000_000.0  # m of all lanes together; largest: 10,400
MOST_LINE_POINTS = 20_000  # of one line as the file has it; the outline of a town has a few thousand
MOST_MEETINGS = 20_000_000  # of lanes that overlap: their pairs would fill 300 MB

# what is sound: numbers that no vehicle on this planet has
MOST_COORDINATE = 2e7  # m; UTM ends at 1e7
MOST_SPEED = 300.0  # m/s; no car and no error of tracking is as fast
MOST_SIZE = 200.0  # m; road trains and trams stay below 60
MOST_SPEED_LIMIT = 100.0  # m/s, 360 km/h
LEAST_STEP_US, MOST_STEP_US = 10_000, 1_000_000  # between frames of 0.1 s; a few dropped frames are usual
MOST_NAME = 200  # characters of a token, a track's or a lane's id; UUIDs have 36

# databases (nuPlan)
MOST_SQL_STEPS = 500_000_000  # of SQLite's machine for one question: some ten seconds
MOST_SQL_ROWS = 2_000_000  # of one answer: a scenario of 341 frames could have 5,800 boxes in each
MOST_SQL_VALUE = 64 * MIB  # of one text or blob

# pickles (ScenarioNet)
MOST_PICKLE_STEPS = 8_000_000  # instructions, a microsecond each; largest: 174,000
MOST_PICKLE_DEPTH = 24  # of containers in containers; largest: 7
MOST_PICKLE_INTEGER = 16  # bytes of one integer; numpy has none of more than 8
MOST_KEY = 1 << 60  # of an integer as a key: larger ones can be chosen so that all share one hash
MOST_DIMENSIONS = 8  # of an array; 2 are usual
MOST_TEXT_WIDTH = 4096  # characters of a text in an array

# a process that converts a log
MOST_SECONDS = 120.0  # of processor time until the next scenario; a scenario takes about a second
