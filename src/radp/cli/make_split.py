"""radp data make-split: a split of sumo14 that is not packaged."""

from __future__ import annotations

from dataclasses import dataclass, field

from tyro.conf import Positional

from radp.runs.engine import Engine


@dataclass(frozen=True)
class DataMakeSplit:
    """Make sumo14-dev or sumo14-hard-xl, the same on every machine, and check it by its hash.

    It is written to the folder RADP_DATA (by default ~/.cache/radp), where every command finds it by its name.
    sumo14-dev holds 40 scenarios of each kind for choosing recipes; sumo14-hard-xl the 80 of 400 of each kind that
    PDM-Closed drove worst. Their road networks are in no other split. Needs pip install "radp[sumo]".

    Example:
        radp data make-split sumo14-dev
    """

    name: Positional[str]
    """sumo14-dev or sumo14-hard-xl."""
    workers: int = 2
    """Processes."""
    where: Engine = field(default_factory=Engine)

    def __call__(self) -> int:
        from radp.evaluation.made_splits import make_split as make
        from radp.runs.errors import BadInput

        try:
            path, digest = make(self.name, self.workers)
        except ImportError as error:
            raise BadInput(str(error)) from None
        print(f"{path}: {digest}")
        return 0
