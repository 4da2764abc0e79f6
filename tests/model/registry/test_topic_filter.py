"""Topic filters: what passes them, what Kafka tidies, and what is refused by name."""

from __future__ import annotations

import re
import warnings
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.scenarios.payload_samples import steady, texts
from watchkeeper.model.registry.subscription import Subscription, decode_consumer, encode_consumer
from watchkeeper.model.registry.topic_filter import (
    INTERNAL_TOPICS,
    POSIX_CLASSES,
    BadFilter,
    TopicFilter,
    compiled,
    normalise,
    topic_filter,
)

# --- Kafka's own table -----------------------------------------------------------------

WHITE, BLACK = True, False


@pytest.mark.parametrize(
    ("kind", "expression", "topic", "passes"),
    [
        (WHITE, "white1,white2", "white2", True),
        (WHITE, "white1,white2", "black1", False),
        (WHITE, ".+", "alltopics", True),
        (WHITE, "white_listed-topic.+", "white_listed-topic1", True),
        (WHITE, "white_listed-topic.+", "black1", False),
        (BLACK, "black1", "white2", True),
        (BLACK, "black1", "black1", False),
        (WHITE, r"test-(?!bad\b)[\w]+", "test-good", True),
        (WHITE, r"test-(?!bad\b)[\w]+", "test-bad", False),
    ],
)
def test_filters_let_through_what_kafka_lets_through(
    kind: bool, expression: str, topic: str, passes: bool
) -> None:
    """The rows of Kafka's filter test."""
    assert TopicFilter(expression, kind).allows(topic) is passes


@pytest.mark.parametrize(
    ("kind", "expression"), [(WHITE, ".+"), (BLACK, "black1"), (WHITE, "__consumer_offsets")]
)
def test_internal_topics_are_hidden_unless_a_filter_includes_them(
    kind: bool, expression: str
) -> None:
    """`exclude.internal.topics` hides what Kafka keeps for itself, whatever the filter says."""
    [internal] = INTERNAL_TOPICS
    chosen = TopicFilter(expression, kind)

    assert not chosen.allows(internal)
    assert not chosen.allows(internal, exclude_internal=True)
    assert chosen.allows(internal, exclude_internal=False)


@pytest.mark.parametrize(
    ("kind", "expression", "needed"),
    [
        (WHITE, "white1,white2", False),
        (WHITE, "white1", False),
        (WHITE, "a-b|c", False),
        (WHITE, " 'white1 , white2' ", False),
        (WHITE, ".+", True),
        (WHITE, "white_listed-topic.+", True),
        (WHITE, "white_listed", True),
        (WHITE, "topic.name", True),
        (WHITE, "", True),
        (BLACK, "black1", True),
        (BLACK, ".+", True),
    ],
)
def test_only_plain_white_lists_need_no_topic_watch(
    kind: bool, expression: str, needed: bool
) -> None:
    """As 0.7.2 judges: letters, digits, dashes and bars; anything else might grow."""
    assert TopicFilter(expression, kind).needs_topic_watch is needed


def test_the_whole_name_has_to_match() -> None:
    """A filter is no search: it matches from the first character to the last."""
    clicks = TopicFilter("clicks", WHITE)

    assert clicks.allows("clicks")
    assert not any(clicks.allows(name) for name in ("myclicks", "clicks2", "clicks\n", "CLICKS"))


@given(texts, st.text("abc_-.1", min_size=1, max_size=12))
@steady
def test_a_black_list_lets_through_what_a_white_list_does_not(
    expression: str, topic: str
) -> None:
    """The two are opposites."""
    with suppress(BadFilter):
        white = TopicFilter(expression, WHITE).allows(topic)
        assert TopicFilter(expression, BLACK).allows(topic) is not white


# --- what Kafka tidies -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "tidied"),
    [
        ("white1,white2", "white1|white2"),
        ("  a , b  ", "a|b"),
        ('"a"', "a"),
        ("'a'", "a"),
        ("\"'a'\"", "a"),
        ("a'b", "a'b"),
        ("'a','b'", "a'|'b"),
        ("\t.+\n", ".+"),
        ("a b", "ab"),
        ("a{1,3}", "a{1|3}"),
        ("''", ""),
        ("", ""),
    ],
)
def test_filters_are_tidied_as_kafka_does(written: str, tidied: str) -> None:
    """Trimmed, commas to bars, no spaces, no outer quotes."""
    assert normalise(written) == tidied


# --- POSIX classes ---------------------------------------------------------------------

ASCII = [chr(code) for code in range(33, 127)]
MEMBERS = {
    "Alnum": str.isalnum,
    "Alpha": str.isalpha,
    "Digit": str.isdigit,
    "Lower": str.islower,
    "Upper": str.isupper,
    "Punct": lambda character: not character.isalnum(),
    "XDigit": lambda character: character in "0123456789abcdefABCDEF",
}


@pytest.mark.parametrize("name", POSIX_CLASSES)
def test_posix_classes_mean_what_they_mean_in_java(name: str) -> None:
    r"""`\p{Alpha}` and its like, alone, negated and as part of a class."""
    members = {character for character in ASCII if MEMBERS[name](character)}

    def matched(expression: str) -> set[str]:
        return {topic for topic in ASCII if TopicFilter(expression, WHITE).allows(topic)}

    assert matched(rf"\p{{{name}}}") == members
    assert matched(rf"[\p{{{name}}}]") == members
    assert matched(rf"[_\p{{{name}}}]") == members | {"_"}
    assert matched(rf"[^\p{{{name}}}]") == set(ASCII) - members
    assert matched(rf"\P{{{name}}}") == set(ASCII) - members


def test_the_class_in_kafkas_own_source_works() -> None:
    """A dash after a POSIX class is a dash."""
    chosen = TopicFilter(r"[\p{Alnum}-|]+", WHITE)

    assert chosen.allows("a-1|B")
    assert not chosen.allows("a_1")


# --- what both read alike --------------------------------------------------------------


@pytest.mark.parametrize(
    ("expression", "passing", "failing"),
    [
        (r"a{2}", "aa", "aaa"),
        (r"a++b", "aab", "aa"),
        (r"(?>a|ab)c", "ac", "abc"),
        (r"(?:a|b)+", "abba", "abc"),
        (r"(?=a)\w+", "abc", "bbc"),
        (r"\w+(?<!_tmp)", "clicks", "clicks_tmp"),
        (r"(?i)clicks", "CLICKS", "click"),
        (r"(?i:c)licks", "Clicks", "CLICKS"),
        (r"\x61\u0062", "ab", "AB"),
        (r"a\.b", "a.b", "axb"),
        (r"[\]]?a", "]a", "b"),
        (r"[a&b~c|]+", "a&~|", "d"),
        (r"a}", "a}", "a"),
        (r"\Aab\Z", "ab", "abb"),
        (r"^ab$", "ab", "abb"),
    ],
)
def test_what_java_and_python_read_alike_is_taken(
    expression: str, passing: str, failing: str
) -> None:
    """Groups, look-around, possessive and atomic matching, flags at the start, escapes."""
    chosen = TopicFilter(expression, WHITE)

    assert chosen.allows(passing)
    assert not chosen.allows(failing)


@pytest.mark.parametrize(
    ("expression", "topic"), [(r"\d+", "٣"), (r"\w+", "é"), ("(?i)k", "\u212a")]
)
def test_classes_are_those_of_ascii_as_in_java(expression: str, topic: str) -> None:
    r"""`\d`, `\w` and the case of letters know no other alphabets without a flag."""
    assert not TopicFilter(expression, WHITE).allows(topic)


@pytest.mark.parametrize("expression", [r"[\p{Punct}~]", r"[\&&a]", r"[\||a]", r"[\~~a]"])
def test_classes_that_would_make_python_warn_are_taken_in_silence(expression: str) -> None:
    """Python means to give two signs in a row a meaning; Java never will."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compiled.cache_clear()
        assert compiled(expression).fullmatch(expression[-2])


# --- what is refused -------------------------------------------------------------------

REFUSED = {
    r"\Qa.b\E": r"quoting with \Q..\E",
    r"\E": r"quoting with \Q..\E",
    r"[a-z&&[^b]]": "an intersection of classes (&&)",
    r"[a[bc]]": "a class inside a class",
    r"[[:alpha:]]": "a class inside a class",
    r"[]a]": r"a class that begins with ], which has to be written \]",
    r"[^]a]": r"a class that begins with ], which has to be written \]",
    r"(?<name>a)": "a named group",
    r"(?P<name>a)": "a named group",
    r"(?-i)a": "a flag other than (?i) at the start, a condition or a comment",
    r"a(?i)b": "a flag other than (?i) at the start, a condition or a comment",
    r"(?x)a": "a flag other than (?i) at the start, a condition or a comment",
    r"(?u)a": "a flag other than (?i) at the start, a condition or a comment",
    r"(?#note)a": "a flag other than (?i) at the start, a condition or a comment",
    r"(a)(?(1)b|c)": "a flag other than (?i) at the start, a condition or a comment",
    r"\p{IsGreek}": r"a \p{..} class beyond the POSIX ones",
    r"\p{L}": r"a \p{..} class beyond the POSIX ones",
    r"\pL": r"a \p{..} class beyond the POSIX ones",
    r"\P{L}": r"a \P{..} inside a class, or one beyond the POSIX ones",
    r"[\P{Alpha}]": r"a \P{..} inside a class, or one beyond the POSIX ones",
    r"[a-\p{Alpha}]": r"a range that ends in a \p{..} class",
    r"(a)\1": "a back-reference or an octal character",
    r"\012": "a back-reference or an octal character",
    r"\h": r"the escape \h",
    r"\R": r"the escape \R",
    r"\X": r"the escape \X",
    r"\G": r"the escape \G",
    r"\z": r"the escape \z",
    r"\v": r"the escape \v",
    r"\a": r"the escape \a",
    r"\e": r"the escape \e",
    r"\cA": r"the escape \c",
    r"\k<name>": r"the escape \k",
    r"\x{61}": r"the escape \x",
    r"\N{DIGIT ONE}": r"the escape \N",
    r"[\b]": r"the escape \b",
    "a\\": "a backslash at its end",
    "a{1|3}": "a brace that is no count such as {2} (a comma means |, so {1,3} is none)",
    "{": "a brace that is no count such as {2} (a comma means |, so {1,3} is none)",
    "a{1000}": "a brace that is no count such as {2} (a comma means |, so {1,3} is none)",
    "[a--z]": "-- inside a class",
    "[a||b]": "|| inside a class",
    "[a~~b]": "~~ inside a class",
}


@pytest.mark.parametrize(("expression", "what"), REFUSED.items())
def test_what_java_reads_differently_is_refused_by_name(expression: str, what: str) -> None:
    """The sentence says which part of the filter it is, and what to do."""
    with pytest.raises(BadFilter) as refused:
        compiled(expression)

    assert str(refused.value) == (
        f"topic filter {expression!r} uses {what}, which Java and Python read differently; "
        "write it another way"
    )


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ("(a", "missing ), unterminated subpattern"),
        ("a)", "unbalanced parenthesis"),
        ("*a", "nothing to repeat"),
        ("a**", "multiple repeat"),
        ("[a", "unterminated character set"),
        ("[z-a]", "bad character range z-a"),
        ("(?<=a+)b", "look-behind requires fixed-width pattern"),
    ],
)
def test_what_is_no_expression_is_refused(expression: str, why: str) -> None:
    """The sentence says where it breaks."""
    with pytest.raises(BadFilter) as refused:
        compiled(expression)

    assert str(refused.value) == (
        f"topic filter {expression!r} cannot be used as a regular expression: {why}"
    )


def test_nesting_without_end_is_refused() -> None:
    """Nesting that exhausts the parser is a bad filter and no crash."""
    with pytest.raises(BadFilter, match="cannot be used as a regular expression"):
        compiled("(" * 5_000 + ")" * 5_000)


PIECES = ["a", "b-", ".", "*", "+", "?", "|", "(", ")", "[", "]", "^", "$", "{", "}", "{2}", "\\"]
PIECES += [
    r"\d",
    r"\p{Alpha}",
    r"\P{Punct}",
    "(?:",
    "(?<",
    "(?i)",
    "&&",
    "--",
    "~~",
    ",",
    " ",
    "'",
]


@given(texts | st.lists(st.sampled_from(PIECES), max_size=12).map("".join))
@steady
def test_any_text_is_a_filter_or_refused(expression: str) -> None:
    """Whatever is written, the answer is a pattern or BadFilter, and never a warning."""
    with warnings.catch_warnings(), suppress(BadFilter):
        warnings.simplefilter("error")
        assert isinstance(compiled(normalise(expression)), re.Pattern)


# --- as registered ---------------------------------------------------------------------


@pytest.mark.parametrize("layout", ["0.7", "0.8"])
@pytest.mark.parametrize(
    ("pattern", "kind"), [("white_list", WHITE), ("black_list", BLACK)], ids=["white", "black"]
)
def test_peers_read_the_filter_that_was_registered(layout, pattern, kind) -> None:  # type: ignore[no-untyped-def]
    """What passes for the one who wrote it passes for the one who reads it."""
    own = Subscription((), pattern, r"test-(?!bad\b)[\w/]+", 2)

    read = decode_consumer("/p", encode_consumer(own, layout, timestamp_ms=1))

    assert topic_filter(read) == topic_filter(own) == TopicFilter(own.expression, kind)
