"""Which rule presses on a plan, how strongly, from when on, and because of whom."""

from radp.attribution.calibration import Calibration
from radp.attribution.teacher import Attribution, attribute

__all__ = ["Attribution", "Calibration", "attribute"]
