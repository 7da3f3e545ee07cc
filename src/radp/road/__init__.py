"""The road: the map, the graph of its lanes, the lanes under a path, and the route."""
