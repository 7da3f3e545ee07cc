"""Scenarios made with Eclipse SUMO: networks, traffic, hazards, recording, smoothing, kinds."""
