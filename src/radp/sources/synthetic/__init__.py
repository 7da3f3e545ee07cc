"""Made crossings: traffic on a made map, the same for the same seed, for tests, benches and first steps."""

from radp.sources.synthetic.make import make_scenario

__all__ = ["make_scenario"]
