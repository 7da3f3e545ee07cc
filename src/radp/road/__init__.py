"""The road: the map, its arrays, the lane under a pose, and the route.

road_map    the map as sources make it
arrays      the one compiled form: areas, centre lines, lane graph; map_memory keeps it as long as the map lives
lane_lines  lanes with borders, resampled: lines to drive along, and the table that scenes choose rows from
rails       lanes of several maps in one row, with stop lines, for reactive agents
places      which lane a pose is on; match: the chain of lanes under a path
route       roadblocks that start under the ego and hang together
route_line  one line with the fewest lane changes, for scenes
guide       lines of least effort with speeds and margins, for planners
"""
