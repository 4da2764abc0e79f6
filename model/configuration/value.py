"""Values of Kafka's settings, which its own files hold as text."""

from __future__ import annotations

import re
from typing import Any

_TRUTHS = {"true": True, "false": False}
_NUMBER = re.compile(r"-?[0-9]{1,18}")


def plain(value: Any) -> Any:
    """Return the number or truth value that a text stands for; anything else as it is."""
    if not isinstance(value, str):
        return value
    if value in _TRUTHS:
        return _TRUTHS[value]
    return int(value) if _NUMBER.fullmatch(value) else value
