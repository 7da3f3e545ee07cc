"""Run folders and the one map over many independent pieces."""

from radp.runs.errors import BadInput, LostWrite, MissingExtra, require
from radp.runs.files import write_atomically, write_json_atomically
from radp.runs.folder import RunError, RunFolder
from radp.runs.ledger import Ledger
from radp.runs.parallel import Failure, Outcome, cpu_count, parallel_map
from radp.runs.progress import Progress

__all__ = [
    "BadInput",
    "Failure",
    "Ledger",
    "LostWrite",
    "MissingExtra",
    "Outcome",
    "Progress",
    "RunError",
    "RunFolder",
    "cpu_count",
    "parallel_map",
    "require",
    "write_atomically",
    "write_json_atomically",
]
