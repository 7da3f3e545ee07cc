"""Intervals, ranks and power: the statistics of every table, defined once."""
