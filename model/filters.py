"""Topic filters: a white list or a black list, as a regular expression.

Kafka hands the expression to Java. Here Python's `re` matches it, and what the two read
differently is refused rather than guessed. Refused: `\\p{..}` and `\\P{..}` classes other
than the POSIX ones below, `&&` inside a class, `\\Q..\\E` quoting, `(?<name>..)` groups,
`\\h`, `\\R`, `\\X`, `\\G`, `\\z`. Alike: everything else that Kafka's own tests and documents
use, possessive quantifiers and look-around among it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from model.registry import Subscription

INTERNAL_TOPICS = frozenset({"__consumer_offsets"})

POSIX_CLASSES = {
    "Alnum": "a-zA-Z0-9",
    "Alpha": "a-zA-Z",
    "Digit": "0-9",
    "Lower": "a-z",
    "Upper": "A-Z",
    "Punct": r"!-/:-@\[-`{-~",
    "XDigit": "0-9a-fA-F",
}

_REFUSED = (
    (r"\\Q|\\E", "quoting with \\Q..\\E"),
    (r"&&", "an intersection of classes (&&)"),
    (r"\(\?<[a-zA-Z]", "a named group (?<name>..)"),
    (r"\\[hRXGz]", "an escape that Python does not have"),
    (
        r"\\[pP](?!\{(?:" + "|".join(POSIX_CLASSES) + r")\})",
        "a \\p{..} class beyond the POSIX ones",
    ),
)


class BadFilter(ValueError):
    """A topic filter cannot be used."""


def normalise(expression: str) -> str:
    """Tidy a filter as Kafka does: commas are alternatives; spaces and outer quotes go."""
    tidy = expression.strip().replace(",", "|").replace(" ", "")
    return re.sub(r"^[\"']+|[\"']+$", "", tidy)


@lru_cache(maxsize=1024)
def compiled(expression: str) -> re.Pattern[str]:
    """Compile a normalised expression; BadFilter says what is wrong with it."""
    for refused, name in _REFUSED:
        if re.search(refused, expression):
            raise BadFilter(
                f"topic filter {expression!r} uses {name}, which Java and Python read "
                "differently; write it another way"
            )
    try:
        return re.compile(_with_posix_classes(expression))
    except re.error as error:
        raise BadFilter(
            f"topic filter {expression!r} is not a regular expression: {error}"
        ) from None


def _with_posix_classes(expression: str) -> str:
    """Write out `\\p{Alnum}` and its like, which stand inside or outside a class."""
    inside = False
    parts: list[str] = []
    for token in re.findall(r"\\[pP]\{\w+\}|\\.|.", expression, re.DOTALL):
        if token.startswith(("\\p{", "\\P{")):
            members = POSIX_CLASSES[token[3:-1]]
            negated = token[1] == "P"
            if inside and negated:
                raise BadFilter(f"{token} inside a class is not supported; write the class out")
            parts.append(members if inside else f"[{'^' if negated else ''}{members}]")
            continue
        if token == "[":
            inside = True
        elif token == "]":
            inside = False
        parts.append(token)
    return "".join(parts)


@dataclass(frozen=True, slots=True)
class TopicFilter:
    """Which topics a consumer with a filter takes."""

    expression: str
    allows_matches: bool
    """True for a white list; a black list allows what does not match."""

    def allows(self, topic: str, *, exclude_internal: bool = True) -> bool:
        """Whether this topic passes; the whole name has to match."""
        matches = compiled(normalise(self.expression)).fullmatch(topic) is not None
        hidden = exclude_internal and topic in INTERNAL_TOPICS
        return matches is self.allows_matches and not hidden

    @property
    def needs_topic_watch(self) -> bool:
        """Whether a topic that does not exist yet could pass, as Kafka 0.7.2 judges it.

        A white list of plain names is complete from the start. From 0.8.1 on, every
        filter is watched.
        """
        plain = re.fullmatch(r"[a-zA-Z0-9|\-]*", normalise(self.expression)) is not None
        return not (self.allows_matches and plain)


def topic_filter(subscription: Subscription) -> TopicFilter:
    """The filter that a subscription holds."""
    assert subscription.is_filter, "only a subscription with a pattern holds a filter"
    return TopicFilter(subscription.expression, subscription.pattern == "white_list")
