"""radp completion: what a shell needs to complete radp's verbs and options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from tyro.conf import Positional


@dataclass(frozen=True)
class Completion:
    """Print a script that lets a shell complete radp's verbs and options.

    Example:
        radp completion bash > ~/.local/share/bash-completion/completions/radp
        radp completion zsh > ~/.zfunc/_radp
        radp completion fish > ~/.config/fish/completions/radp.fish
    """

    shell: Positional[Literal["bash", "zsh", "fish"]]
    """The shell."""

    def __call__(self) -> int:
        from radp.cli.main import completion_script

        print(completion_script(self.shell))
        return 0
