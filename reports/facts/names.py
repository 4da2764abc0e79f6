"""Names in reports: their natural order, and lists of them as text."""

from __future__ import annotations

import re
from collections.abc import Sequence

_DIGITS = re.compile(r"(\d+)")


def natural(text: str) -> tuple[tuple[int, int, str], ...]:
    """A key that sorts names with numbers in them as people do: 2 before 10."""
    parts = _DIGITS.split(text)
    return tuple(
        (0, int(part), part) if at % 2 else (1, 0, part) for at, part in enumerate(parts) if part
    )


def listed(words: Sequence[str]) -> str:
    """Words as a sentence has them: a, b and c."""
    return " and ".join(filter(None, [", ".join(words[:-1]), *words[-1:]]))
