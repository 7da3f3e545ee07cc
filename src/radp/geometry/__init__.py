"""Geometry: the only room where such maths stands (batched torch, and scalar numba kernels for the simulator)."""
