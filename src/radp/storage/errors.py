"""What can be wrong with stored files."""

from __future__ import annotations

from radp.runs.errors import BadInput


class StoreError(BadInput):
    """A store or one of its files cannot be used; the message is one sentence that names the file."""
