"""The documentation as a site: it is built without a warning, and has every page."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import watchkeeper
from tests import HOME


@pytest.mark.slow
def test_the_site_is_built_without_a_warning(tmp_path: Path) -> None:
    """Each page of the docs is in it, and the Python API with each public name."""
    pytest.importorskip("mkdocs", reason="the extra `docs` is not installed")
    site = tmp_path / "site"
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(site)],
        cwd=HOME,
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    pages = [page.relative_to(HOME / "docs") for page in (HOME / "docs").rglob("*.md")]
    names = {"index" if page.name == "README.md" else str(page.with_suffix("")) for page in pages}
    assert {name for name in names if not (site / f"{name}.html").exists()} == set()
    api = (site / "reference/api.html").read_text()
    public = set(watchkeeper.__all__) - {"__version__"}
    assert {name for name in public if f">{name}<" not in api and f".{name}" not in api} == set()
    assert (site / "readme.html").exists()
    assert (site / "examples.html").exists()


def test_the_site_names_no_place_of_its_own() -> None:
    """It can be served from any folder, and loads nothing from elsewhere."""
    text = (HOME / "mkdocs.yml").read_text()
    assert "site_url" not in text
    assert "font: false" in text
