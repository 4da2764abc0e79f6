"""The name that was probably meant, as a sentence behind that of an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any


def did_you_mean(name: str, names: Sequence[str] | Mapping[str, Any]) -> str:
    """Return a sentence with the name nearest to a mistyped one, or nothing."""
    near = get_close_matches(name, names, n=1)
    return f" Did you mean {near[0]!r}?" if near else ""
