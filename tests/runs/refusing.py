"""What a process may be asked to do and cannot; imports little, so that processes start fast."""

from radp.runs.errors import BadInput


def refuse() -> None:
    raise BadInput("there are no samples")
