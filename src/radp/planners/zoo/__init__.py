"""Learned planners that others published: one file a network, their features from our observations."""
