"""The first line of each page: what came of it, where its siblings are, and its command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from urllib.parse import quote

from watchkeeper.api import folder
from watchkeeper.reports.figure.page import with_run


def say_in_page(
    page: Path, *, word: str, links: Sequence[str], command: str, style: str = ""
) -> None:
    """Write the line into a page, in place of an earlier one; `links` are markup."""
    parts = " · ".join((f'<span class="{style or word}">{word}</span>', *links))
    markup = f'<p class="run">{parts}<br><code>{escape(command)}</code></p>'
    folder.write_text(page, with_run(page.read_text(encoding="utf-8"), markup))


def link(name: str, text: str) -> str:
    """Return a link to a file beside the page."""
    return f'<a href="{quote(name)}">{escape(text)}</a>'


def say_in_search(home: Path, about: Mapping[str, str], *, word: str, command: str) -> None:
    """Say in each page of a search what came of it, and link the other files of its folder."""
    there = {name: text for name, text in about.items() if (home / name).exists()}
    for name in there:
        if name.endswith(".html"):
            others = [link(other, text) for other, text in there.items() if other != name]
            say_in_page(home / name, word=word, links=others, command=command)
