"""For the API reference: examples in docstrings (>>> ...) are shown as code, not read as Markdown."""

from __future__ import annotations

import re
from typing import Any

from griffe import Extension, Object

# An example: lines that begin with >>>, and all that follow up to an empty line.
EXAMPLE = re.compile(r"^>>> .*(?:\n(?!\s*$).*)*", re.M)


class FenceDoctests(Extension):
    """Puts each example of a docstring into a fence."""

    def on_object(self, *, obj: Object, loader: Any, **more: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = EXAMPLE.sub(lambda example: f"```python\n{example[0]}\n```", obj.docstring.value)
