"""Makes the site from the pages as they stand in the repository, and from the code.

Pages link to the README and to folders beside `docs/`. The README and the page of the examples
become pages of the site; a link to anything else of the repository becomes its path. The page of
the Python API has each public name with its docstring.
"""

from __future__ import annotations

import re
from pathlib import Path, PurePosixPath
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

import watchkeeper

HOME = Path(__file__).parents[2]
BESIDE = {"README.md": "readme.md", "examples/README.md": "examples.md"}
"""A page of the repository outside of `docs/` -> its place in the site."""
API = "reference/api.md"
LINK = re.compile(r"(!?)\[((?:[^][]|\[[^][]*\])*)\]\(([^)\s]+)\)")
MODULES = ("watchkeeper.virtual", "watchkeeper.testing")
"""Modules whose public names are documented as they are."""


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that do not stand in `docs/`."""
    for source, place in BESIDE.items():
        text = (HOME / source).read_text()
        files.append(File.generated(config, place, content=_linked(text, source)))
    files.append(File.generated(config, API, content=api_page()))
    return files


def on_page_markdown(text: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Let the links of a page lead to places in the site."""
    place = page.file.src_uri
    is_beside = place in BESIDE.values() or place == API
    return text if is_beside else _linked(text, f"docs/{place}")


def _linked(text: str, source: str) -> str:
    """Return a page of the repository with its links as links of the site."""
    return LINK.sub(lambda found: _link(found, source), text)


def _link(found: re.Match[str], source: str) -> str:
    mark, label, target = found.groups()
    path, _, anchor = target.partition("#")
    if not path or "://" in path:
        return found.group()
    there = _normal(PurePosixPath(source).parent / path)
    if there.startswith("docs/"):
        place = there.removeprefix("docs/")
    elif there in BESIDE:
        place = BESIDE[there]
    else:
        return f"{label} (`{there}`)"
    return f"{mark}[{label}]({_from(source, place)}{'#' if anchor else ''}{anchor})"


def _normal(path: PurePosixPath) -> str:
    parts: list[str] = []
    for part in path.parts:
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return "/".join(parts)


def _from(source: str, place: str) -> str:
    """Return the way from a page to a place in the site."""
    here = BESIDE.get(source, source.removeprefix("docs/"))
    return "../" * here.count("/") + place


def api_page() -> str:
    """Return the page of the Python API: each public name, in the order of the code."""
    public: dict[str, Any] = watchkeeper._PUBLIC
    parts = ["# The Python API", "What `import watchkeeper` gives, and the modules for tests."]
    for name, (module, attribute) in public.items():
        place = module if attribute is None else f"{module}.{attribute}"
        parts.append(f"::: {place}\n    options:\n      heading: watchkeeper.{name}")
    parts += [f"::: {module}" for module in MODULES]
    return "\n\n".join(parts) + "\n"
