"""The pages agree with the code: links lead somewhere, and the rooms are those of the import contract."""

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md"))]
CARDS = sorted((ROOT / "src/radp/zoo/models").glob("*/CARD.md"))


def prose(page: Path) -> str:
    """The page without its blocks of code."""
    return re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.S | re.M)


def anchors(page: Path) -> set[str]:
    """The names that a link can give to headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *CARDS], ids=lambda page: f"{page.parent.name}/{page.name}")
def test_links_lead_somewhere(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if link.startswith("http"):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


def test_every_page_is_in_the_index() -> None:
    linked = set(re.findall(r"\]\((\w[\w-]*\.md)", prose(ROOT / "docs/index.md")))
    assert linked == {page.name for page in (ROOT / "docs").glob("*.md")} - {"index.md"}


def test_the_rooms_are_those_of_the_import_contract() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]
    layers = next(contract["layers"] for contract in contracts if contract["type"] == "layers")
    table = re.findall(r"^\| `(\w+)` \|", (ROOT / "docs/architecture.md").read_text(), re.M)
    assert table == [layer.removeprefix("radp.") for layer in reversed(layers)]


@pytest.mark.parametrize("page", [*PAGES, *CARDS], ids=lambda page: f"{page.parent.name}/{page.name}")
def test_modules_that_a_page_names_exist(page: Path) -> None:
    for name in set(re.findall(r"radp\.\w+\.[\w.]*\w", page.read_text())):
        first, second = name.split(".")[1:3]
        room = ROOT / "src/radp" / first
        assert room.is_dir(), name
        file = room / f"{second}.py"
        assert file.exists() or (room / second).is_dir() or second in (room / "__init__.py").read_text(), name
