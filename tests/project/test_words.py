"""The words of the glossary are used, and those it rejects are not."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tests import HOME
from tests.support.source_tree import PACKAGES

GLOSSARY = HOME / "docs" / "reference" / "glossary.md"
KINDS = {".py", ".md", ".js", ".yaml"}
EXEMPT = {GLOSSARY, HOME / "CHANGELOG.md"}
"""Files that have to name rejected words, or that report what was once said."""


def rejected_words() -> list[str]:
    """The entries of the glossary's column "do not say"."""
    rows = [
        line.split("|") for line in GLOSSARY.read_text().splitlines() if line.startswith("| ")
    ]
    cells = [row[3].strip() for row in rows if len(row) == 5]
    return [
        word.strip()
        for cell in cells
        for word in cell.split(",")
        if word.strip() and word.strip() not in ("do not say", "---")
    ]


def texts() -> Iterator[Path]:
    """Every file with words of ours."""
    yield from (path for path in HOME.glob("*.md") if path not in EXEMPT)
    for folder in (*PACKAGES, "src/watchkeeper", "tests", "bench", "docs", "examples"):
        for path in (HOME / folder).rglob("*"):
            if path.suffix in KINDS and path.is_file() and path not in EXEMPT:
                yield path


def pattern_of(words: list[str]) -> re.Pattern[str]:
    """Matches each word as a whole, in sentences, and as a part of names like `lots_of`."""
    either = "|".join(re.escape(word).replace(r"\ ", "[ _]") for word in words)
    return re.compile(rf"(?<![A-Za-z])({either})(?![A-Za-z]|\.cfg)", re.IGNORECASE)


def test_no_rejected_word_is_used() -> None:
    """The column "do not say" holds for code, comments, names, tests and pages."""
    pattern = pattern_of(rejected_words())
    found = [
        f"{path.relative_to(HOME)}:{number}: {match[0]}"
        for path in texts()
        if path != Path(__file__)
        for number, line in enumerate(path.read_text().splitlines(), 1)
        for match in pattern.finditer(line)
    ]

    assert found == []


def test_rejected_words_are_found_in_sentences_and_names() -> None:
    """The pattern sees a word in a sentence, in a name and across an underscore."""
    pattern = pattern_of(["lots", "leave a watch"])

    assert pattern.search("two Lots of them")
    assert pattern.search("stored_lots = 3")
    assert pattern.search("leave_a_watch()")
    assert not pattern.search("slots, allots")
    assert len(rejected_words()) > 20
