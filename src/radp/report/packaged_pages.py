"""The demo's pages that come with the package. Imports nothing heavy, so that they open at once."""

from __future__ import annotations

import shutil
from pathlib import Path

from radp.runs.errors import BadInput
from radp.runs.files import make_folder
from radp.zoo import DEMO


def copy_pages(out: Path | str) -> Path:
    """The pages that come with the package, ready to look at -> their start page."""
    out = Path(out)
    if not (DEMO / "index.html").is_file():
        raise BadInput("no pages are packaged here; radp demo without --quick drives and makes them")
    if out.exists() and not out.is_dir():
        raise BadInput(f"{out} is a file; expected a folder for the demo")
    make_folder(out)
    for page in DEMO.glob("*.html"):
        shutil.copyfile(page, out / page.name)
    shutil.copyfile(DEMO / "pages.json", out / "pages.json")
    return out / "index.html"
