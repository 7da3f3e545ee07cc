"""A network before it is built."""

from __future__ import annotations

from dataclasses import dataclass, field

from radp.sources.sumo.demand import TrafficRates
from radp.sources.sumo.plain import PlainNet


@dataclass(frozen=True)
class Blueprint:
    """Plain XML, options for netconvert, its traffic."""

    net: PlainNet
    options: tuple[str, ...] = ()
    traffic: TrafficRates = field(default_factory=TrafficRates)
