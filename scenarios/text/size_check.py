"""A check of a file's size before it is parsed: input that would take long is refused at once.

It uses the fast reader of YAML, which is less strict than the one that reads a scenario, so
it judges nothing else.
"""

from __future__ import annotations

from typing import Any

import yaml

from watchkeeper.scenarios.text.errors import Problem, ScenarioError

MOST_ENTRIES = 2_000
MOST_VALUES = 200_000
DEEPEST = 30

_FAST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FAR_TOO_DEEP = 10 * DEEPEST


def glance(name: str, text: str) -> None:
    """Refuse a text that is too long or too deep, or has too long a timeline."""
    seen = _Seen()
    try:
        for event in yaml.parse(text, Loader=_FAST):
            seen.add(event)
            if seen.depth > _FAR_TOO_DEEP:
                message = f"is nested more than {DEEPEST} deep"
                raise ScenarioError(name, [Problem("", message, _line(event))])
    except yaml.YAMLError:
        return  # the strict reader reports what is wrong
    except (ValueError, OverflowError) as error:  # an escape such as "\UFFFFFFFF"
        if isinstance(error, ScenarioError):
            raise
        return
    if seen.entries > MOST_ENTRIES:
        message = f"has {seen.entries} entries; at most {MOST_ENTRIES}"
        raise ScenarioError(name, [Problem("timeline", message, seen.timeline_line)])
    if seen.values > MOST_VALUES:
        message = f"holds more than {MOST_VALUES} values, counting what aliases repeat"
        raise ScenarioError(name, [Problem("", message, 1)])


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 1


class _Seen:
    """The counts of a text so far."""

    def __init__(self) -> None:
        self.depth = 0
        self.values = 0
        self.entries = 0
        self.timeline_line = 1
        self._key: str | None = None
        """The key at the outermost level whose value is being read."""
        self._is_key_next = True

    def add(self, event: yaml.Event) -> None:
        """Count one more event of the reader."""
        if isinstance(event, yaml.NodeEvent):
            self.values += 1
            if self.depth == 1:
                self._take_outermost(event)
            elif self.depth == 2 and self._key == "timeline":
                self.entries += 1
        self.depth += isinstance(event, yaml.CollectionStartEvent)
        self.depth -= isinstance(event, yaml.CollectionEndEvent)

    def _take_outermost(self, event: yaml.NodeEvent) -> None:
        if self._is_key_next:
            self._key = event.value if isinstance(event, yaml.ScalarEvent) else None
            if self._key == "timeline":
                self.timeline_line = _line(event)
        self._is_key_next = not self._is_key_next
