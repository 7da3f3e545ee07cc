"""The documentation as a site, and the files that stand beside the code."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from importlib.util import find_spec
from pathlib import Path

import pytest
import yaml

import radp
from radp.version import __version__

ROOT = Path(__file__).parents[1]


class Plain(yaml.SafeLoader):
    """YAML of mkdocs without its own tags."""


Plain.add_multi_constructor("tag:yaml.org,2002:python/", lambda loader, suffix, node: suffix)


def settings() -> dict:
    return yaml.load((ROOT / "mkdocs.yml").read_text(), Loader=Plain)


def test_every_page_has_its_place_in_the_site() -> None:
    listed = re.findall(r"[\w-]+\.md", yaml.dump(settings()["nav"]))
    assert sorted(listed) == sorted(page.name for page in (ROOT / "docs").glob("*.md"))


def test_the_reference_lists_every_public_name() -> None:
    shown = re.findall(r"^::: ([\w.]+)$", (ROOT / "docs/reference.md").read_text(), re.M)
    assert len(shown) == len(set(shown))
    own = {module.replace(":", ".") if ":" in module else f"{module}.{name}" for name, module in radp._FACE.items()}
    assert set(shown) == own


def test_the_citation_names_this_version() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == __version__
    assert {"cff-version", "message", "title", "authors", "license"} <= set(citation)


@pytest.mark.parametrize(
    "template", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=lambda path: path.stem
)
def test_issue_templates_are_forms(template: Path) -> None:
    form = yaml.safe_load(template.read_text())
    if template.stem == "config":
        return
    assert form["name"] and form["description"]
    ids = [part["id"] for part in form["body"]]
    assert len(ids) == len(set(ids))
    assert all(part["attributes"]["label"] for part in form["body"])


def test_the_dockerfile_copies_what_exists() -> None:
    lines = (ROOT / "Dockerfile").read_text().splitlines()
    copied = [name for line in lines if line.startswith("COPY ") for name in line.split()[1:-1]]
    assert copied and all((ROOT / name).exists() for name in copied)
    kept = {line.removeprefix("!") for line in (ROOT / ".dockerignore").read_text().splitlines() if line[:1] == "!"}
    assert {name.split("/")[0] for name in copied} <= kept
    users = [line for line in lines if line.startswith("USER ")]
    assert users and users[-1] != "USER root"


HADOLINT = shutil.which("hadolint", path=os.pathsep.join((str(Path(sys.executable).parent), os.environ["PATH"])))


@pytest.mark.skipif(HADOLINT is None, reason='hadolint is not installed: pip install "radp[dev]"')
def test_the_dockerfile_passes_hadolint() -> None:
    done = subprocess.run([str(HADOLINT), str(ROOT / "Dockerfile")], capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


class Fetched(HTMLParser):
    """What a page makes a browser fetch."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        wanted = "href" if tag == "link" and given.get("rel") not in ("canonical", "next", "prev") else "src"
        if tag in ("script", "img", "iframe", "link", "source") and given.get(wanted):
            self.found.append(str(given[wanted]))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("material") is None, reason='the site needs pip install "radp[docs]"')
def test_the_site_is_whole_and_needs_no_network(tmp_path: Path) -> None:
    build = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(tmp_path / "site")]
    done = subprocess.run(build, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr[-3000:]
    pages = sorted((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        parser = Fetched()
        parser.feed(page.read_text())
        assert [place for place in parser.found if place.startswith(("http", "//"))] == [], page
    assert "load_planner" in (tmp_path / "site" / "reference.html").read_text()
