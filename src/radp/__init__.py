"""radp: rule-aligned diffusion planning for autonomous driving."""

from radp.version import __version__

__all__ = ["__version__"]
