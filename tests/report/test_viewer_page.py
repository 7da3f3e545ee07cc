"""Pages are self-contained, and names from files never become HTML."""

from __future__ import annotations

import base64
import hashlib
import json
from html.parser import HTMLParser

import pytest

from radp.report.viewer.page import json_in_html, render
from radp.report.viewer.scenario_page import SCRIPTS, STYLES
from tests.report.conftest import HOSTILE


class Elements(HTMLParser):
    """What a browser would see: the elements, their attributes, and the text of scripts and title."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, list[str]] = {"script": [], "title": [], "style": []}
        self._inside = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        self._inside = tag
        if tag in self.texts:
            self.texts[tag].append("")

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        if self._inside in self.texts:
            self.texts[self._inside][-1] += data

    def count(self, tag: str) -> int:
        return sum(1 for name, _ in self.found if name == tag)


def page_of(name: str) -> str:
    return render("scenario.html", name, {"token": name, "list": [name]}, STYLES, SCRIPTS)


@pytest.mark.parametrize(
    "name", [HOSTILE, "</SCRIPT >", "<!--<script>", "]]>", "{{data}}{{script}}", "a\"b'c", "\\u003c"]
)
def test_hostile_names_stay_text(name: str) -> None:
    seen, plain = Elements(page_of(name)), Elements(page_of("plain"))
    assert [tag for tag, _ in seen.found] == [tag for tag, _ in plain.found]
    assert json.loads(seen.texts["script"][0]) == {"token": name, "list": [name]}
    assert seen.texts["script"][1] == plain.texts["script"][1]
    assert seen.texts["title"] == [name]


def test_json_in_html_has_nothing_that_html_reads() -> None:
    text = json_in_html({"a": HOSTILE, "b": [None, 1.5, "ü"]})
    assert not set(text) & set("<>&\u2028\u2029")
    assert text.isascii()
    assert json.loads(text)["a"] == HOSTILE


def test_numbers_that_json_lacks_become_null() -> None:
    assert json_in_html({"a": float("nan"), "b": [1.5, float("inf")]}) == '{"a":null,"b":[1.5,null]}'


@pytest.mark.parametrize(
    ("template", "styles", "scripts"),
    [("scenario.html", STYLES, SCRIPTS), ("index.html", ("base.css", "index.css"), ("theme.js", "index.js"))],
)
def test_page_fetches_nothing_and_runs_its_own_script_only(
    template: str, styles: tuple[str, ...], scripts: tuple[str, ...]
) -> None:
    seen = Elements(render(template, "t", {}, styles, scripts))
    assert not [tag for tag, attributes in seen.found if "src" in attributes or tag in ("link", "iframe", "object")]
    assert not [key for _, attributes in seen.found for key in attributes if key.startswith("on")]
    assert "url(" not in seen.texts["style"][0]
    assert "@import" not in seen.texts["style"][0]
    policy = next(a["content"] for _, a in seen.found if a.get("http-equiv") == "Content-Security-Policy")
    digest = base64.b64encode(hashlib.sha256(seen.texts["script"][1].encode()).digest()).decode()
    assert policy == f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"


def test_scripts_never_make_html_of_text() -> None:
    seen = Elements(page_of("plain"))
    for word in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(", "fetch(", "XMLHttpRequest"):
        assert word not in seen.texts["script"][1]
