"""PDM-Closed: proposals along the route, each driven and scored in a forecast of the traffic, the best one taken."""
