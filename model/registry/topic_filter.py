"""Topic filters: a white list or a black list, as a regular expression.

Kafka passes the expression to Java; here Python's `re` matches it. A table below lists what
both read alike: everything that Kafka's tests and documents use, including possessive
quantifiers and look-around. Anything else is refused by name, since Java and Python would
read it differently, or one of them not at all.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from watchkeeper.model.registry.subscription import Subscription

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

_POSIX = rf"\{{(?:{'|'.join(POSIX_CLASSES)})\}}"
_CHARACTER = r"\\[tnrf]|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[^a-zA-Z0-9]|\\[dDwWsS]"

_ALIKE = re.compile(
    rf"{_CHARACTER}|\\[bBAZ]|\\[pP]{_POSIX}"
    r"|\((?!\?)|\(\?(?:[:=!>]|<[=!]|i:)"
    r"|\[(?!\^?\])\^?"
    r"|\{\d{1,3}\}"
    r"|[^\\(\[{]",
    re.DOTALL,
)
"""What may stand outside a class: characters, groups, the opening of a class, a count."""

_ALIKE_IN_CLASS = re.compile(
    rf"{_CHARACTER}|\\p{_POSIX}|-(?!-|\\p)|([&|~])(?!\1)|[^\\\[&|~-]", re.DOTALL
)
"""What may stand inside `[..]`."""

_DIFFERENT = (
    (r"\\[QE]", r"quoting with \Q..\E"),
    (r"\\P\{\w+\}", r"a \P{..} inside a class, or one beyond the POSIX ones"),
    (r"\\[pP]", r"a \p{..} class beyond the POSIX ones"),
    (r"\\\d", "a back-reference or an octal character"),
    (r"\\.", "the escape %s"),
    (r"\\$", "a backslash at its end"),
    (r"\(\?<[a-zA-Z]|\(\?P", "a named group"),
    (r"\(\?", "a flag other than (?i) at the start, a condition or a comment"),
    (r"\{", "a brace that is no count such as {2} (a comma means |, so {1,3} is none)"),
    (r"\[\^?\]", r"a class that begins with ], which has to be written \]"),
    (r"\[", "a class inside a class"),
    (r"&&", "an intersection of classes (&&)"),
    (r"-\\p", r"a range that ends in a \p{..} class"),
    (r"..", "%s inside a class"),
)
"""What is refused, by its beginning, and what it is called. The first row that fits names it."""


class BadFilter(ValueError):
    """A topic filter cannot be used."""


def normalise(expression: str) -> str:
    """Tidy a filter as Kafka does: commas are alternatives; spaces and outer quotes go."""
    tidy = expression.strip().replace(",", "|").replace(" ", "")
    return re.sub(r"^[\"']+|[\"']+$", "", tidy)


@lru_cache(maxsize=1024)
def compiled(expression: str) -> re.Pattern[str]:
    """Compile a normalised expression; BadFilter says what is wrong with it."""
    translated = _in_python(expression)
    try:
        return re.compile(translated, re.ASCII)
    except re.error as error:
        why = error.msg
    except RecursionError:
        why = "nested too deep"
    raise BadFilter(f"topic filter {expression!r} cannot be used as a regular expression: {why}")


def _in_python(expression: str) -> str:
    """The expression with its POSIX classes written out; BadFilter if Java reads it otherwise."""
    flag = "(?i)" if expression.startswith("(?i)") else ""
    parts: list[str] = [flag]
    at = len(flag)
    inside = False
    while at < len(expression):
        alike = (_ALIKE_IN_CLASS if inside else _ALIKE).match(expression, at)
        if alike is None:
            raise _refusal(expression, at)
        token = alike[0]
        parts.append(_written(token, inside))
        inside = token != "]" if inside else token.startswith("[")
        at = alike.end()
    return "".join(parts)


def _written(token: str, inside: bool) -> str:
    if token[:2] not in (r"\p", r"\P"):
        return token
    members = POSIX_CLASSES[token[3:-1]]
    return members if inside else f"[{'^' if token[1] == 'P' else ''}{members}]"


def _refusal(expression: str, at: int) -> BadFilter:
    for beginning, name in _DIFFERENT:
        found = re.compile(beginning, re.DOTALL).match(expression, at)
        if found is not None:
            what = name.replace("%s", found[0])
            break
    return BadFilter(
        f"topic filter {expression!r} uses {what}, which Java and Python read differently; "
        "write it another way"
    )


@dataclass(frozen=True, slots=True)
class TopicFilter:
    """The topics that a filter allows."""

    expression: str
    allows_matches: bool
    """True for a white list; a black list allows what does not match."""

    def allows(self, topic: str, *, exclude_internal: bool = True) -> bool:
        """Whether this topic passes; the whole name has to match."""
        matches = compiled(normalise(self.expression)).fullmatch(topic) is not None
        hidden = exclude_internal and topic in INTERNAL_TOPICS
        return matches is self.allows_matches and not hidden

    def check(self) -> None:
        """Raise BadFilter if the expression cannot be used."""
        compiled(normalise(self.expression))

    @property
    def needs_topic_watch(self) -> bool:
        """Whether a topic that does not exist yet could pass, as Kafka 0.7.2 judges it.

        A white list of plain names is complete from the start. From 0.8.1 on, every
        filter is watched.
        """
        plain = re.fullmatch(r"[a-zA-Z0-9|\-]+", normalise(self.expression)) is not None
        return not (self.allows_matches and plain)


def topic_filter(subscription: Subscription) -> TopicFilter:
    """The filter that a subscription holds."""
    assert subscription.is_filter, "only a subscription with a pattern holds a filter"
    return TopicFilter(subscription.expression, subscription.pattern == "white_list")
