"""Mutated files against every reader of the project: `make fuzz`, or `python -m tests.fuzz --inputs 10000 --seed 0`.

Inputs are made in other processes, so that a crash is seen and counted. A reader may read an input or refuse it with an
error of ours (BadInput); everything else is a finding: a crash, a hang, any other exception.
"""
