"""How fast each room is on this machine; `radp bench` prints what these functions measure."""
