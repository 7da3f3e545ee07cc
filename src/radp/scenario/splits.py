"""Scenarios by the name of a packaged split, or from a path: a store, a neutral JSON file, or a folder of them."""

from __future__ import annotations

import os
from collections import Counter, OrderedDict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Protocol, overload

from radp import zoo
from radp.runs.errors import BadInput, did_you_mean
from radp.scenario import Scenario
from radp.scenario.neutral_json import read_scenario
from radp.scenario.parts import name_and_part, positions, spread_over_kinds
from radp.scenario.shards import MANIFEST
from radp.scenario.store import ScenarioStore

JSON_SUFFIXES = (".json", ".json.gz")
RESULT_SUFFIXES = (".result.json", ".result.json.gz")  # scores that lie beside drives, not scenarios
SCENARIOS_KEPT = 64
MADE = ("sumo14-dev", "sumo14-hard-xl")  # made on demand


class Split(Protocol):
    """A lazy sequence of scenarios: a slice is a split again.

    missing: scenarios that are known but cannot be read; incomplete: the sentence that says so, or nothing.
    """

    missing: int
    incomplete: str

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Scenario]: ...
    @overload
    def __getitem__(self, key: int) -> Scenario: ...
    @overload
    def __getitem__(self, key: slice) -> Split: ...
    def select(self, indices: Sequence[int]) -> Split: ...
    def tokens(self) -> list[str]: ...
    def kind_of_each(self) -> list[str]: ...
    def kinds(self) -> dict[str, int]: ...


def made_split(name: str) -> Path:
    """Where `radp data make-split NAME` puts a split: below the folder RADP_DATA, by default ~/.cache/radp."""
    home = os.environ.get("RADP_DATA") or Path.home() / ".cache" / "radp"
    return Path(home) / "splits" / name


def open_split(name_or_path: str | Path, allow_missing: bool = False) -> Split:
    """A packaged or made split by name, else a store folder, a neutral JSON file (`.json`, `.json.gz`) or a folder of
    them.

    Behind it, "@held-out" chooses a tenth of the logs, "@rest" the others, "@every-5" each fifth
    (`radp.scenario.parts`). A store of which something is missing is refused, unless that is allowed; scenarios whose
    content is wrong are then left out.

    >>> len(radp.open_split("sumo14-val")), len(radp.open_split("sumo14-val@every-5"))
    (280, 56)
    """
    name, part = name_and_part(str(name_or_path))
    if part is not None:
        whole = open_split(name, allow_missing)
        return whole.select(positions(whole.tokens(), part))
    path = Path(name_or_path)
    if str(name_or_path) in zoo.list_splits():
        return ScenarioStore.open(zoo.SPLITS / str(name_or_path))
    if path.is_file():
        if not path.name.endswith(JSON_SUFFIXES):
            raise BadInput(f"{path} is neither a store folder nor a .json or .json.gz file")
        return JsonScenarios([path])
    if (path / MANIFEST).exists():
        return _open_store(path, allow_missing)
    if path.is_dir():
        files = sorted(file for file in path.iterdir() if _is_scenario_file(file))
        if not files:
            raise BadInput(f"{path} holds no scenarios: neither {MANIFEST} nor .json or .json.gz files")
        return JsonScenarios(files)
    if str(name_or_path) in MADE:
        made = made_split(str(name_or_path))
        if (made / MANIFEST).exists():
            return _open_store(made, allow_missing)
        raise BadInput(f"{name_or_path} is not packaged: make it with radp data make-split {name_or_path}")
    packaged, to_make = ", ".join(zoo.list_splits()) or "none", ", ".join(MADE)
    found = str(name_or_path)
    raise BadInput(
        f"{found!r} is neither a packaged split ({packaged}), nor one to make ({to_make}), nor a path that exists"
        f"{did_you_mean(path.name, (*zoo.list_splits(), *MADE))}"
    )


def limited(split: Split, limit: int | None) -> Split:
    """At most `limit` scenarios of a split: the first of each kind, then the second of each, and so on."""
    if limit is None or limit >= len(split):
        return split
    return split.select(spread_over_kinds(split.kind_of_each(), limit))


def with_tokens(split: Split, tokens: Sequence[str]) -> Split:
    """The scenarios of these tokens, in the order of the split; BadInput names one that is not there."""
    every = split.tokens()
    if unknown := next((token for token in tokens if token not in set(every)), None):
        raise BadInput(f"there is no scenario {unknown!r} among {len(every)}{did_you_mean(unknown, every)}")
    return split.select([i for i, token in enumerate(every) if token in set(tokens)])


def _open_store(path: Path, allow_missing: bool) -> Split:
    """Where missing scenarios are allowed, all are tried first: those whose content is wrong are missing as well."""
    store = ScenarioStore.open(path, allow_missing=allow_missing)
    return store.readable() if allow_missing else store


def _is_scenario_file(file: Path) -> bool:
    return file.is_file() and file.name.endswith(JSON_SUFFIXES) and not file.name.endswith(RESULT_SUFFIXES)


class JsonScenarios(Sequence[Scenario]):
    """Scenarios in neutral JSON files, one per file, read when asked for; the last few are remembered."""

    missing, incomplete = 0, ""

    def __init__(self, files: Sequence[Path]) -> None:
        self.files = tuple(files)
        self._tokens: dict[Path, tuple[str, str]] = {}  # file -> token, kind
        self._recent: OrderedDict[Path, Scenario] = OrderedDict()

    def __len__(self) -> int:
        return len(self.files)

    @overload
    def __getitem__(self, key: int) -> Scenario: ...
    @overload
    def __getitem__(self, key: slice) -> JsonScenarios: ...
    def __getitem__(self, key: int | slice) -> Scenario | JsonScenarios:
        if isinstance(key, slice):
            return JsonScenarios(self.files[key])
        file = self.files[key]
        if file not in self._recent:
            self._recent[file] = read_scenario(file)
            if len(self._recent) > SCENARIOS_KEPT:
                self._recent.popitem(last=False)
        self._recent.move_to_end(file)
        scenario = self._recent[file]
        self._tokens[file] = scenario.token, scenario.kind
        return scenario

    def select(self, indices: Sequence[int]) -> JsonScenarios:
        """Some scenarios by position, still lazy."""
        return JsonScenarios([self.files[i] for i in indices])

    def tokens(self) -> list[str]:
        """Reads every file that was not read yet; two files with one token are refused."""
        owner: dict[str, Path] = {}
        for (token, _), file in zip(self._index(), self.files):
            if token in owner:
                raise BadInput(f"{owner[token]} and {file} both hold a scenario {token!r}")
            owner[token] = file
        return list(owner)

    def kind_of_each(self) -> list[str]:
        """Reads every file that was not read yet."""
        return [kind for _, kind in self._index()]

    def kinds(self) -> dict[str, int]:
        """kind -> number of scenarios, sorted by name. Reads every file that was not read yet."""
        return dict(sorted(Counter(self.kind_of_each()).items()))

    def _index(self) -> list[tuple[str, str]]:
        for i, file in enumerate(self.files):
            if file not in self._tokens:
                self[i]
        return [self._tokens[file] for file in self.files]

    def __reduce__(self) -> tuple[type[JsonScenarios], tuple[tuple[Path, ...]]]:
        """Another process reads the files itself."""
        return JsonScenarios, (self.files,)
