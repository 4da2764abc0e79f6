"""What a job of GitHub shows of runs that failed: an annotation and the summary of the step."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path

ACTIONS = "GITHUB_ACTIONS"
SUMMARY = "GITHUB_STEP_SUMMARY"
ESCAPES = str.maketrans({"%": "%25", "\r": "%0D", "\n": "%0A"})


def error_lines(failures: Iterable[tuple[str, str]]) -> Iterator[str]:
    """Yield a line for each test and text, as GitHub reads them in the log of a job."""
    for test, text in failures:
        title = test.translate(ESCAPES).replace(":", "%3A").replace(",", "%2C")
        yield f"::error title={title}::{text.translate(ESCAPES)}"


def write_summary(failures: Iterable[tuple[str, str]]) -> None:
    """Add each failure to the summary of the step, where there is one."""
    place = os.environ.get(SUMMARY)
    if place:
        with Path(place).open("a", encoding="utf-8") as file:
            for test, text in failures:
                file.write(f"### {test}\n\n```text\n{text}\n```\n\n")
