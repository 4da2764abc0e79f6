"""A look at a file before it is read: what would take long is refused at once.

The fast reader of YAML is not as strict as the one that reads a scenario, so nothing else
is judged by it.
"""

from __future__ import annotations

from typing import Any

import yaml

from scenarios.problems import Problem, ScenarioError

MOST_ENTRIES = 2_000
MOST_VALUES = 200_000
DEEPEST = 30

_FAST: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_FAR_TOO_DEEP = 10 * DEEPEST


def glance(name: str, text: str) -> None:
    """Refuse a text whose timeline, or the whole of it, is too long or far too deep."""
    seen = _Seen()
    try:
        for event in yaml.parse(text, Loader=_FAST):
            seen.add(event)
            if seen.depth > _FAR_TOO_DEEP:
                said = f"is nested more than {DEEPEST} deep"
                raise ScenarioError(name, [Problem("", said, _line(event))])
    except yaml.YAMLError:
        return  # whoever reads it says what is wrong
    except (ValueError, OverflowError) as error:  # an escape such as "\UFFFFFFFF"
        if isinstance(error, ScenarioError):
            raise
        return
    if seen.entries > MOST_ENTRIES:
        said = f"has {seen.entries} entries; at most {MOST_ENTRIES}"
        raise ScenarioError(name, [Problem("timeline", said, seen.timeline_line)])
    if seen.values > MOST_VALUES:
        said = f"holds more than {MOST_VALUES} values, counting what aliases repeat"
        raise ScenarioError(name, [Problem("", said, 1)])


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark is not None else 1


class _Seen:
    """What has been seen of a text so far."""

    def __init__(self) -> None:
        self.depth = 0
        self.values = 0
        self.entries = 0
        self.timeline_line = 1
        self._key: str | None = None
        """The key at the outermost level whose value comes next, or is being read."""
        self._is_key_next = True

    def add(self, event: yaml.Event) -> None:
        """One more piece of the text."""
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
