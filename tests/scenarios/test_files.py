"""Scenario files: what is said of each kind of mistake, and that nothing else can happen."""

from __future__ import annotations

import os
import re
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.scenarios.error_messages import ENDS, ENTRIES, FIELDS, rows
from tests.support.scenarios.mutations import mutant, texts_of_shipped
from tests.support.scenarios.payload_samples import steady
from watchkeeper.model.group.variants import VARIANTS
from watchkeeper.model.plan.faults import VERBS
from watchkeeper.scenarios import Scenario, ScenarioError, from_text, json_schema, load, shipped
from watchkeeper.scenarios.schema.schema import OPTION_FIELDS
from watchkeeper.scenarios.text.document import LARGEST_FILE
from watchkeeper.scenarios.text.errors import MOST_SHOWN, Problem
from watchkeeper.scenarios.text.size_check import MOST_ENTRIES, MOST_VALUES
from watchkeeper.scenarios.text.units import (
    duration_text,
    parse_duration,
    parse_rate,
    parse_size,
    rate_text,
)

BASE = """\
name: x
about: y
clusters:
  main: {brokers: 3, topics: {clicks: {partitions: 6}}}
groups:
  billing: {consumers: 3, streams: {clicks: 1}}
timeline:
  - {at: 1s, produce: clicks, rate: 10/s}
"""
"""A scenario with nothing wrong. Its lines are counted below."""


def refusal(text: str | bytes, variant: str | None = None) -> str:
    """What is said of a file; empty if there is nothing to say."""
    try:
        from_text("x.yaml", text).plan(variant)
    except ScenarioError as error:
        return str(error)
    return ""


def with_entries(*entries: str) -> str:
    """The scenario with these entries from line 9 on; the first is `timeline[1]`."""
    return BASE + "".join(f"  - {entry}\n" for entry in entries)


def edited(old: str, new: str) -> str:
    """The scenario with one thing replaced."""
    assert BASE.count(old) == 1, old
    return BASE.replace(old, new)


def test_the_scenario_that_is_spoilt_below_is_right() -> None:
    """Otherwise nothing that follows would show anything."""
    assert refusal(BASE) == ""


@pytest.mark.parametrize("name", shipped())
def test_shipped_scenarios_are_right(name: str) -> None:
    """Every file that ships can be read, and planned for the variant that it names."""
    scenario = load(name)

    assert scenario.name == name
    assert scenario.plan().variant == scenario.model.variant


# --- one entry of the timeline ---------------------------------------------------------


"""An entry of the timeline, and what is said of it."""


@pytest.mark.parametrize(("entry", "message"), rows(ENTRIES))
def test_what_is_wrong_with_an_entry_is_said(entry: str, message: str) -> None:
    """File, line, field, value, what was expected, and the nearest word."""
    assert refusal(with_entries(entry)) == f"x.yaml:9: {message}"


@pytest.mark.parametrize(
    "entry",
    [
        *("{at: 5s, move: broker/1, to: spare}", "{at: 5s, move: broker/1, to: 'a-1.b:65535'}"),
        *("{at: 5s, create_topic: a.b_c-d, partitions: 5000}",),
        *("{at: 5s, partition: zookeeper/1, from: zookeeper, for: 1s}",),
    ],
)
def test_what_is_at_the_edge_is_taken(entry: str) -> None:
    """A limit is the last thing that is allowed."""
    assert refusal(with_entries(entry)) == ""


@pytest.mark.parametrize(
    ("to", "hint"),
    [
        ("broker/7", "; did you mean 'broker/2'?"),
        ("1", "; expected one of: broker/0, broker/1, broker/2"),
        ("billing/1", "; expected one of: broker/0, broker/1, broker/2"),
    ],
)
def test_a_leader_moves_to_a_broker_of_its_cluster(to: str, hint: str) -> None:
    """Only there can a replica be."""
    text = with_entries(f"{{at: 5s, move_leader: clicks/1, to: {to!r}}}")

    assert refusal(text, "kafka_08") == (
        f"x.yaml:9: timeline[1].to: {to!r} is not a broker of the cluster main{hint}"
    )


def test_a_leader_moves_to_the_id_of_a_broker_that_has_a_name() -> None:
    """A process may be called what one likes; the registry knows its id."""
    text = edited("brokers: 3", "brokers: [{id: 4}, {id: 9, name: spare}]")

    text += "  - {at: 5s, move_leader: clicks/1, to: broker/spare}\n"

    assert from_text("x.yaml", text).plan("kafka_08").timeline[1].option("to") == "broker/9"


def test_an_entry_without_a_verb_gets_the_verbs() -> None:
    """Those that can be done, at least in one world."""
    doable = ", ".join(name for name, verb in VERBS.items() if verb.worlds)

    assert refusal(with_entries("{at: 5s}")) == (
        f"x.yaml:9: timeline[1]: has no verb; expected one of: {doable}"
    )


def test_an_entry_that_is_not_there_is_said() -> None:
    """A dash with nothing behind it."""
    assert refusal(with_entries("")) == "x.yaml:9: timeline[1]: is empty; expected a mapping"


def test_faults_that_no_world_can_do_are_declared() -> None:
    """A verb without a world says why, and no other does."""
    assert {name for name, verb in VERBS.items() if not verb.worlds} == {"torn_write"}
    assert all(bool(verb.lacking) is not bool(verb.worlds) for verb in VERBS.values())


# --- entries that contradict one another -----------------------------------------------

CONTRADICTIONS = {
    ("{at: 5s, crash: billing/1}", "{at: 6s, crash: billing/1}"): (
        "billing/1 does not run at that time: it ended by timeline[1]"
    ),
    ("{at: 5s, crash: billing/1}", "{at: 5s, crash: billing/1}"): (
        "billing/1 does not run at that time: it ended by timeline[1]"
    ),
    ("{at: 5s, leave: billing/1}", "{at: 6s, expire: billing/1}"): (
        "billing/1 does not run at that time: it ended by timeline[1]"
    ),
    ("{at: 5s, crash_host: broker/1}", "{at: 6s, pause: broker/1, for: 1s}"): (
        "broker/1 does not run at that time: it ended by timeline[1]"
    ),
    ("{at: 5s, crash: zookeeper/1}", "{at: 6s, crash: zookeeper/1}"): (
        "zookeeper/1 does not run at that time: it ended by timeline[1]"
    ),
    ("{at: 6s, pause: billing/0, for: 5s}", "{at: 7s, pause: billing/0, for: 1s}"): (
        "begins at 7s, while the same fault of timeline[1] lasts until 11s; let one end first"
    ),
    ("{at: 6s, quorum_loss: zookeeper, for: 5s}", "{at: 10s, quorum_loss: zookeeper, for: 1s}"): (
        "begins at 10s, while the same fault of timeline[1] lasts until 11s; let one end first"
    ),
    (
        "{at: 6s, partition: billing/1, from: zookeeper, for: 5s}",
        "{at: 6s, partition: billing/1, from: zookeeper, for: 5s}",
    ): "begins at 6s, while the same fault of timeline[1] lasts until 11s; let one end first",
    ("{at: 6s, pause: billing/0, for: 5s}", "{at: 7s, leave: billing/0}"): (
        "billing/0 is paused until 11s"
    ),
    (
        "{at: 6s, crash: billing/0}",
        "{at: 7s, restart: billing/0}",
        "{at: 8s, start: billing/0}",
    ): ("billing/0 runs already at that time"),
}


@pytest.mark.parametrize(("entries", "message"), CONTRADICTIONS.items())
def test_entries_that_contradict_one_another_are_refused(
    entries: tuple[str, ...], message: str
) -> None:
    """The later of them gets an error that says why."""
    at = len(entries)

    assert refusal(with_entries(*entries)) == f"x.yaml:{8 + at}: timeline[{at}]: {message}"


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ("{at: 5s, start: billing/1}", "billing/1 runs already at that time"),
        ("{at: 5s, restart: broker/1}", "broker/1 runs already at that time"),
        (
            "{at: 0s, crash: billing/1}",
            "billing/1 does not run at that time: it has not started by then",
        ),
    ],
)
def test_entries_that_contradict_the_beginning_are_refused(entry: str, message: str) -> None:
    """What runs cannot start, and what has not started cannot crash."""
    assert refusal(with_entries(entry)) == f"x.yaml:9: timeline[1]: {message}"


@pytest.mark.parametrize(
    "entries",
    [
        (
            "{at: 5s, crash: billing/1}",
            "{at: 6s, restart: billing/1}",
            "{at: 7s, crash: billing/1}",
        ),
        ("{at: 6s, pause: billing/0, for: 1s}", "{at: 7s, pause: billing/0, for: 1s}"),
        ("{at: 6s, pause: billing/0, for: 2s}", "{at: 7s, pause: billing/1, for: 2s}"),
        ("{at: 6s, pause: billing/0, for: 2s}", "{at: 7s, crash: billing/0}"),
        (
            "{on: {node: billing/1, purpose: claim}, crash: billing/1}",
            "{at: 9s, restart: billing/1}",
        ),
    ],
)
def test_entries_that_can_be_true_together_are_taken(entries: tuple[str, ...]) -> None:
    """Not everything that looks alike is a contradiction; the time of a step is not known."""
    assert refusal(with_entries(*entries)) == ""


def test_the_order_of_entries_is_that_of_their_times() -> None:
    """A timeline may be written in any order."""
    text = with_entries("{at: 9s, restart: billing/1}", "{at: 5s, crash: billing/1}")

    assert refusal(text) == ""


# --- fields ----------------------------------------------------------------------------


"""More of the same; a row here stands in for one that is written alike."""


@pytest.mark.parametrize(("change", "message"), rows(FIELDS))
def test_what_is_wrong_with_a_field_is_said(change: str, message: str) -> None:
    """File, line, field, value, what was expected, and the nearest word."""
    old, _, new = change.partition(" => ")

    assert refusal(edited(old, new)).split("\n")[0] == f"x.yaml:{message}"


@pytest.mark.parametrize(
    ("gone", "message"),
    [
        ("name: x\n", "1: a scenario needs `name`"),
        ("about: y\n", "1: a scenario needs `about`"),
        (", topics: {clicks: {partitions: 6}}", "4: clusters.main: needs `topics`"),
        ("consumers: 3, ", "6: groups.billing: needs `consumers`"),
        (", streams: {clicks: 1}", "6: groups.billing: needs either `streams` or `filter`"),
        ("{partitions: 6}", "4: clusters.main.topics.clicks: is empty; expected a mapping"),
    ],
)
def test_what_is_missing_is_said(gone: str, message: str) -> None:
    """Where something has to be, and what."""
    assert refusal(edited(gone, "")) == f"x.yaml:{message}"


def test_a_field_with_a_slip_in_its_name_is_said_to_be_wrong_and_to_be_missing() -> None:
    """Both are true, and each has its line."""
    assert refusal(edited("about: y", "abuot: y")).split("\n") == [
        "x.yaml:1: a scenario needs `about`",
        "x.yaml:2: abuot: is not a field here; did you mean 'about'?",
    ]


def test_a_word_like_none_of_them_gets_the_list() -> None:
    """Where no word is near, all words are given."""
    assert refusal(BASE + "variant: zzz\n") == (
        f"x.yaml:9: variant: 'zzz' is not a variant; expected one of: {', '.join(VARIANTS)}"
    )


def test_a_number_of_more_than_fifteen_digits_is_refused() -> None:
    """It would not be a number to every reader of YAML."""
    assert refusal(edited("brokers: 3", f"brokers: {'9' * 20}")) == (
        f"x.yaml:4: clusters.main.brokers: '{'9' * 20}' is not a whole number or a list; "
        "expected at most 15 digits"
    )


def test_a_long_name_is_refused_and_cut_short() -> None:
    """A message stays readable, whatever stands in the file."""
    assert refusal(edited("name: x", f"name: {'a' * 101}")) == (
        f"x.yaml:1: name: '{'a' * 58}… is too long; expected at most 100 characters"
    )


@pytest.mark.parametrize(("line", "message"), rows(ENDS))
def test_what_is_wrong_at_the_end_is_said(line: str, message: str) -> None:
    """The fields that are about the whole, in line 9."""
    assert refusal(f"{BASE}{line}\n") == f"x.yaml:9: {message}"


@pytest.mark.parametrize(
    ("part", "line", "what"),
    [
        ("clusters", 3, "a mapping; expected names with their values"),
        ("groups", 5, "a mapping; expected names with their values"),
        ("timeline", 7, "a list; put a dash before each entry"),
    ],
)
def test_a_whole_part_of_the_wrong_type_is_said(part: str, line: int, what: str) -> None:
    """Not a list, not a mapping: said of the part and not of what is in it."""
    before, _, _ = BASE.partition(f"{part}:")

    assert refusal(f"{before}{part}: soon\n") == f"x.yaml:{line}: {part}: 'soon' is not {what}"


@pytest.mark.parametrize("node", ["broker/0", "zookeeper/3", "zookeeper", "administrator"])
def test_whatever_an_event_is_about_can_be_looked_for(node: str) -> None:
    """Members, brokers, servers, the ensemble, the administrator."""
    base = BASE.replace("brokers: 3", 'brokers: 3, layout: "0.8"')
    assert refusal(f"{base}sometimes: [{{event: ended, node: {node}}}]\n") == ""


def test_no_event_is_about_the_administrator_of_the_07_layout() -> None:
    found = refusal(f"{BASE}sometimes: [{{event: ended, node: administrator}}]\n")
    assert "sometimes[0].node: 'administrator' is not a node of this scenario" in found


def test_a_setting_of_a_consumer_stands_in_for_that_of_its_group() -> None:
    """Under whichever name."""
    text = edited(
        "consumers: 3",
        "config: {zookeeper.sync.time.ms: 7}, consumers: [{config: {zk.synctime.ms: 9}}, {}]",
    )

    consumers = [consumer for _, consumer in from_text("x.yaml", text).plan().consumers()]

    assert [consumer.settings.sync_time_ms for consumer in consumers] == [9, 7]


def test_brokers_may_share_an_id() -> None:
    """A conflict of ids is something to be tried; their processes have names."""
    assert refusal(edited("brokers: 3", "brokers: [{id: 1}, {id: 1, name: other}]")) == ""


TWO_CLUSTERS = """\
name: x
about: y
clusters:
  east: {topics: {clicks: {partitions: 2}}}
  west: {topics: {views: {partitions: 2}}}
groups:
  billing: {cluster: west, consumers: 1, streams: {%s: 1}}
timeline:
  - {at: 5s, create_topic: fresh, partitions: 2}
"""


@pytest.mark.parametrize(
    ("topic", "message"),
    [
        ("views", ""),
        ("clicks", "is a topic of the cluster east, and the group reads from west"),
        ("fresh", "is a topic of the cluster east, and the group reads from west"),
        ("view", "there is no such topic; did you mean 'views'?"),
    ],
)
def test_a_group_reads_from_its_own_cluster(topic: str, message: str) -> None:
    """What the timeline creates is in the first one."""
    expected = f"x.yaml:7: groups.billing.streams.{topic}: {message}" if message else ""

    assert refusal(TWO_CLUSTERS % topic) == expected


def test_partitions_that_the_timeline_adds_count() -> None:
    """A file of ten lines could ask for more than any machine has."""
    entries = [f"{{at: 5s, create_topic: t{at}, partitions: 5000}}" for at in range(4)]

    assert refusal(with_entries(*entries)) == (
        "x.yaml:3: clusters: there are 20006 partitions in all; expected at most 20000"
    )


def test_a_herd_of_a_thousand_is_allowed() -> None:
    """Ten thousand partitions, a thousand consumers."""
    text = edited("partitions: 6", "partitions: 10000").replace("consumers: 3", "consumers: 1000")

    assert refusal(text) == ""


def test_every_problem_is_listed_in_the_order_of_lines() -> None:
    """An author need not mend one mistake to see the next; none is reported twice."""
    text = with_entries("{at: 5, crash: billing/1}", "{at: 5s, crsh: billing/1}")
    text = text.replace("name: x", "name: 5")

    assert refusal(text).split("\n") == [
        "x.yaml:1: name: 5 is not text; put it in quotes",
        "x.yaml:9: timeline[1].at: 5 is not a duration; expected a number with its unit, such as "
        "5s or 5ms",
        "x.yaml:10: timeline[2].crsh: is not a field here; did you mean 'crash'?",
    ]


def test_a_mistake_of_a_group_is_said_once_and_not_of_each_consumer() -> None:
    """Three consumers with one wrong topic are one problem."""
    message = refusal(edited("{clicks: 1}", "{clickz: 1}"))

    assert message.count("\n") == 0


def test_many_problems_are_cut_short() -> None:
    """Ten lines, and how many more there are."""
    message = refusal(with_entries(*["{at: 5, crash: billing/1}"] * 25)).split("\n")

    assert len(message) == MOST_SHOWN + 1
    assert message[-1] == "x.yaml: and 15 more problems"


def test_a_problem_without_a_place_is_a_sentence() -> None:
    """What is true of the whole file stands without a field."""
    assert str(Problem("", "is empty")) == "is empty"


def test_a_huge_value_is_cut_short() -> None:
    """A message stays readable, whatever stands in the file."""
    message = refusal(edited("{clicks: 1}", f"[{', '.join(['clicks'] * 10_000)}]"))

    assert len(message) < 200


# --- variants and layouts --------------------------------------------------------------


@pytest.mark.parametrize(
    ("variant", "layout", "allowed"), [("kafka_07", "0.8", "0.7"), ("kafka_08", "0.7", "0.8")]
)
def test_a_variant_on_a_layout_it_does_not_allow_is_refused(
    variant: str, layout: str, allowed: str
) -> None:
    """The sentence says which layouts it allows."""
    text = edited("brokers: 3", f"brokers: 3, layout: '{layout}'")

    assert refusal(text, variant) == (
        f"x.yaml:4: clusters.main.layout: {variant} does not run on the {layout} layout (it "
        f"allows {allowed}); choose another variant or another layout"
    )


def test_variants_that_have_no_layout_in_common_are_refused() -> None:
    """A group may mix variants, but not on two layouts."""
    text = edited("consumers: 3", "consumers: 3, variant: kafka_07")

    assert refusal(text, "kafka_08") == (
        "x.yaml:4: clusters.main: no layout is allowed by all of kafka_07, kafka_08"
    )


def test_an_unknown_variant_is_refused() -> None:
    """Though the file has nothing to do with it."""
    assert refusal(BASE, "kafka_8") == (
        "variant: 'kafka_8' is not a variant; did you mean 'kafka_08'?"
    )
    assert refusal(BASE, "").startswith("variant: '' is not a variant; expected one of: ")


@pytest.mark.parametrize("variant", VARIANTS)
def test_a_scenario_that_says_nothing_of_layouts_runs_with_every_variant(variant: str) -> None:
    """Each gets the first layout that it allows."""
    assert from_text("x.yaml", BASE).plan(variant).variant == variant


# --- YAML ------------------------------------------------------------------------------

BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{new}: &{new} [{','.join([f'*{old}'] * 10)}]\n"
    for old, new in zip("abcdefg", "bcdefgh", strict=True)
)
EMPTY = "1: is empty; expected a scenario: name, about, clusters, groups, timeline"
INDENTED = "is not YAML: a colon too many, or a line indented too far"
UNLIKE = "is not YAML: a line is indented unlike those around it"
BRACKET = "is not YAML: a bracket is not closed, or a comma is missing"
TAB = "is not YAML: a tab stands where only spaces may"
FILES: dict[str, tuple[str | bytes, str]] = {
    "empty": ("", EMPTY),
    "only a comment": ("# nothing\n", EMPTY),
    "text": ("hello", "1: holds 'hello'; expected fields such as name and groups"),
    "a list": ("- a\n- b\n", "1: holds ['a', 'b']; expected fields such as name and groups"),
    "binary": (
        b"\x7fELF\x02\x01\xff\xfe",
        "1: byte 6 is not UTF-8 text; expected a scenario in YAML",
    ),
    "binary later": (
        BASE.encode() + b"\xff",
        f"9: byte {len(BASE)} is not UTF-8 text; expected a scenario in YAML",
    ),
    "null bytes": (b"name: x\n\x00", "2: holds the character U+0000; expected plain text"),
    "half a value": (
        'name: "\\ud800"',
        "1: name: holds half a character; expected plain text",
    ),
    "half a key": ('"\\ud800": x', "1: holds half a character; expected plain text"),
    "no character": (
        'name: "\\UFFFFFFFF"',
        "1: is not YAML: an escape in double quotes names no character",
    ),
    "tab": (edited("  main:", "\tmain:"), f"4: {TAB}"),
    "tab in the timeline": (f"{BASE}\t- {{at: 5s}}\n", f"9: {TAB}"),
    "duplicate key": (
        edited("consumers: 3", "consumers: 3, consumers: 4"),
        "6: groups.billing.consumers: stands twice; the first is in line 6",
    ),
    "itself in a list": (
        "name: &a [*a]\n",
        "1: name[0]: refers to itself; a scenario cannot be cyclic",
    ),
    "itself in a mapping": (
        "name: x\nclusters: &c {main: *c}\n",
        "2: clusters.main: refers to itself; a scenario cannot be cyclic",
    ),
    "the whole in itself": (
        "&a {name: x, about: *a}\n",
        "1: about: refers to itself; a scenario cannot be cyclic",
    ),
    "alias bomb": (
        BOMB,
        f"1: holds more than {MOST_VALUES} values, counting what aliases repeat",
    ),
    "unknown alias": (
        "name: *b\n",
        "1: is not YAML: an alias (*name) has no anchor (&name) before it",
    ),
    "deep": ("a: " + "[" * 40 + "]" * 40, "1: a: is nested more than 30 deep"),
    "deeper": ("a: " + "[" * 5_000, "1: is nested more than 30 deep"),
    "open brace": ("name: {\n", f"2: {BRACKET}"),
    "missing comma": (edited("brokers: 3,", "brokers: 3"), f"4: {BRACKET}"),
    "open quote": ('name: x\nabout: "abc\n', "2: is not YAML: a quote is not closed"),
    "two colons": ("name: a: b\n", f"1: {INDENTED}"),
    "indented": ("name: a\n  about: b\n", f"2: {INDENTED}"),
    "unlike": ("name: a\nclusters:\n    main: 1\n  other: 2\n", f"4: {UNLIKE}"),
    "after the end": ("{name: a}\nabout: b\n", f"2: {UNLIKE}"),
    "no colon": ("name: a\nabout\n", "2: is not YAML: a line has no colon after its key"),
    "percent": (
        "name: %a\n",
        "1: is not YAML: a word begins with a sign that needs quotes",
    ),
    "backslash": (
        'name: "a\\qb"\n',
        "1: is not YAML: a backslash in double quotes; use single ones",
    ),
    "two documents": (
        "name: a\n---\nname: b\n",
        "2: is not YAML: a second document begins after ---",
    ),
    "a list in a line": (
        "name: - a\n",
        "1: is not YAML: a dash stands where no list can begin",
    ),
    "a tag": (
        "name: !!python/object:os.system x\n",
        "1: name: has the tag '!!python/object:os.system'; expected a plain value",
    ),
    "a key that is a list": ("? [a]\n: b\n", "1: has a key that is not a word"),
}


@pytest.mark.parametrize("kind", FILES)
def test_what_is_no_scenario_file_is_refused(kind: str) -> None:
    """Whatever the bytes are, the answer is a line of a file and a sentence."""
    text, message = FILES[kind]

    assert refusal(text) == f"x.yaml:{message}"


def test_a_file_that_is_too_large_is_refused() -> None:
    """Before anything in it is looked at."""
    assert refusal(" " * (LARGEST_FILE + 1)) == "x.yaml: is larger than 1 MiB; no scenario is"


@pytest.mark.parametrize("word", ["on", "off", "yes", "no", "y", "n", "On", "NO", "5e3", "0x10"])
def test_words_stay_words(word: str) -> None:
    """YAML 1.1 takes `no` for false and `on` for true; here they are names like any other."""
    assert from_text("x.yaml", edited("name: x", f"name: {word}")).name == word


def test_on_is_a_field_and_no_truth_value() -> None:
    """The key `on` needs no quotes."""
    text = with_entries("{on: {node: billing/1, purpose: claim}, lose: reply}")

    action = from_text("x.yaml", text).plan().timeline[1]

    assert action.trigger is not None
    assert action.trigger.node == "billing/1"


def test_a_repeated_value_may_be_an_alias() -> None:
    """Anchors and aliases are of use, as long as they do not multiply."""
    text = edited(
        "consumers: 3", "config: &c {rebalance.max.retries: 9}, consumers: [{config: *c}]"
    )

    [(_, consumer)] = from_text("x.yaml", text).plan().consumers()

    assert consumer.settings.rebalance_retries == 9


def test_a_byte_order_mark_is_no_part_of_the_file() -> None:
    """Editors of some systems write one."""
    assert from_text("x.yaml", b"\xef\xbb\xbf" + BASE.encode()).name == "x"


def test_too_many_entries_are_refused() -> None:
    """A timeline has a limit, and says it."""
    text = with_entries(*["{at: 5s, crash: billing/1}"] * MOST_ENTRIES)

    assert (
        refusal(text)
        == f"x.yaml:7: timeline: has {MOST_ENTRIES + 1} entries; at most {MOST_ENTRIES}"
    )


def test_too_many_entries_are_refused_before_they_are_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Reading ten thousand takes seconds, and then they are refused."""
    monkeypatch.setattr("yaml.compose", None)
    text = with_entries(*["{at: 5s, crash: billing/1}"] * 10_000)

    assert refusal(text) == "x.yaml:7: timeline: has 10001 entries; at most 2000"


# --- files by name ---------------------------------------------------------------------


def test_a_name_that_is_not_there_gets_the_nearest() -> None:
    """The shipped scenarios are known by name."""
    with pytest.raises(ScenarioError) as refused:
        load("consumer-crsh")

    assert str(refused.value) == (
        "consumer-crsh: there is no such file or shipped scenario; did you mean 'consumer-crash'?"
    )


def test_a_file_that_cannot_be_read_is_said(tmp_path: Any) -> None:
    """A folder, for one."""
    with pytest.raises(ScenarioError, match=r"it is a folder; name a file in it$"):
        load(str(tmp_path))


@pytest.mark.parametrize("name", ["/dev/zero", "pipe", "pipe.yaml"])
def test_what_is_no_regular_file_is_not_opened(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A device may have no end, and a pipe no beginning."""
    monkeypatch.chdir(tmp_path)
    if name.startswith("pipe"):
        os.mkfifo(name)

    with pytest.raises(ScenarioError, match=r"cannot be read: it is a device or a pipe"):
        load(name)


def test_no_more_is_read_than_a_scenario_may_have(tmp_path: Path) -> None:
    """A file of a terabyte is refused at once."""
    path = tmp_path / "large.yaml"
    with path.open("wb") as file:
        file.truncate(1 << 40)

    with pytest.raises(ScenarioError, match=r"is larger than 1 MiB; no scenario is$"):
        load(path)


@pytest.mark.parametrize("make", ["mkdir", "mkfifo"])
def test_a_shipped_scenario_is_hidden_by_a_file_only(
    make: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not by a folder that happens to be called so."""
    monkeypatch.chdir(tmp_path)
    getattr(os, make)("consumer-crash")
    assert load("consumer-crash").source == "consumer-crash"

    getattr(os, "rmdir" if make == "mkdir" else "unlink")("consumer-crash")
    Path("consumer-crash").write_text(BASE)
    assert load("consumer-crash").name == "x"


@pytest.mark.parametrize("name", ["", "a\0b", "a\0b.yaml", "a" * 5_000, "a" * 5_000 + ".yaml"])
def test_names_that_no_file_can_have(name: str) -> None:
    """Each is a sentence."""
    with pytest.raises(ScenarioError, match=r"is empty|no such file|null byte|too long"):
        load(name)


def test_a_file_is_read_from_where_it_is(tmp_path: Any) -> None:
    """Messages name the file as it was given."""
    path = tmp_path / "mine.yaml"
    path.write_text(edited("name: x", "name: 5"))

    with pytest.raises(ScenarioError) as refused:
        load(str(path))

    assert str(refused.value) == f"{path}:1: name: 5 is not text; put it in quotes"


# --- slips of the hand -----------------------------------------------------------------

MUTANTS = 500


def outcome(text: str) -> str:
    """What comes of a text: a scenario that was planned for all variants, or refusals."""
    try:
        scenario = from_text("x.yaml", text)
    except ScenarioError as error:
        return said_well(error)
    assert isinstance(scenario, Scenario)
    for variant in VARIANTS:
        try:
            scenario.plan(variant)
        except ScenarioError as error:
            said_well(error)
    return "scenario"


def said_well(error: ScenarioError) -> str:
    """Insist that an error has sentences, places in the file, and none of pydantic's words."""
    assert error.problems
    for line in str(error).split("\n"):
        assert re.match(r"x\.yaml(:\d+)?: \S", line), line
        assert not re.search(
            r"[Ii]nput should|valid (string|integer|dict)|Model\b|NoneType", line
        )
    return "refused"


@pytest.mark.parametrize("part", range(5))
def test_a_slip_of_the_hand_gives_a_scenario_or_a_sentence(part: int) -> None:
    """A hundred seeded mutations of the shipped files, planned for every variant."""
    texts = texts_of_shipped()

    outcomes = {}
    for seed in range(part * MUTANTS // 5, (part + 1) * MUTANTS // 5):
        try:
            outcomes[seed] = outcome(mutant(seed, texts))
        except Exception as error:
            raise AssertionError(
                f"mutant {seed} ends in {type(error).__name__}: {error}"
            ) from error

    assert set(outcomes.values()) == {"scenario", "refused"}


@given(st.text(max_size=200) | st.binary(max_size=200))
@steady
def test_any_text_gives_a_sentence(text: str | bytes) -> None:
    """No text that was not meant to be one is a scenario."""
    data = text.encode("utf-8", "surrogatepass") if isinstance(text, str) else text

    with pytest.raises(ScenarioError):
        from_text("x.yaml", data)


# --- units -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "us"),
    [
        *(("0s", 0), ("5us", 5), ("200ms", 200_000), ("1.5s", 1_500_000), ("2m", 120_000_000)),
        *(("24h", 86_400_000_000), ("0.000001s", 1)),
    ],
)
def test_durations_are_whole_microseconds(text: str, us: int) -> None:
    """By integer arithmetic, so that every machine reads the same."""
    assert parse_duration(text) == us


@given(st.integers(0, 86_400_000_000))
@steady
def test_durations_can_be_read_back(us: int) -> None:
    """What is written of a duration means the same duration."""
    assert parse_duration(duration_text(us)) == us


@given(st.integers(1, 10_000_000_000))
@steady
def test_rates_can_be_read_back(thousandths: int) -> None:
    """What is written of a rate means the same rate."""
    assert parse_rate(rate_text(thousandths)) == thousandths


@pytest.mark.parametrize(
    ("text", "size"), [("1B", 1), ("2kB", 2_000), ("1KiB", 1_024), ("1.5MB", 1_500_000)]
)
def test_sizes_are_bytes(text: str, size: int) -> None:
    """With decimal and binary units."""
    assert parse_size(text) == size


@pytest.mark.parametrize(
    "text", ["٣s", "1_000s", "1e3s", "5 s", "5S", "+5s", "s", "", ".5s", "5.s"]
)
def test_other_spellings_are_no_durations(text: str) -> None:
    """One way to write it is enough."""
    with pytest.raises(ValueError, match="is not a duration; expected a number with its unit"):
        parse_duration(text)


# --- JSON Schema -----------------------------------------------------------------------


def models() -> dict[str, Any]:
    """The JSON Schema of a scenario and of every part that has a name."""
    schema = json_schema()
    return {"Scenario": schema, **schema["$defs"]}


def test_the_schema_says_which_draft_it_is() -> None:
    """Editors ask."""
    schema = json_schema()

    assert schema["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema["title"] == "A watchkeeper scenario"
    assert set(schema["required"]) == {"name", "about", "clusters"}


@pytest.mark.parametrize("name", sorted({*VERBS, *OPTION_FIELDS, "at", "on"}))
def test_the_schema_has_every_verb_and_option(name: str) -> None:
    """An editor offers each of them, with what it is."""
    assert models()["Entry"]["properties"][name]["description"]


@pytest.mark.parametrize("name", sorted(models()))
def test_the_schema_allows_no_field_that_is_refused(name: str) -> None:
    """An editor marks a field that does not exist, and demands only those that do."""
    model = models()[name]

    assert model["additionalProperties"] is False
    assert set(model.get("required", [])) <= set(model["properties"])


@pytest.mark.parametrize("name", sorted(models()))
def test_the_schema_explains_every_field(name: str) -> None:
    """An editor shows what a field is for."""
    fields = models()[name]["properties"].items()

    assert [field for field, about in fields if not about.get("description")] == []


def parts(value: Any) -> list[dict[str, Any]]:
    """Every mapping inside a schema."""
    inner = (
        value.values() if isinstance(value, dict) else value if isinstance(value, list) else []
    )
    own = [value] if isinstance(value, dict) else []
    return own + [part for field in inner for part in parts(field)]


def test_the_schema_refers_to_what_it_has() -> None:
    """Every reference leads somewhere, and every pattern is an expression."""
    schema = json_schema()

    for part in parts(schema):
        if isinstance(part.get("$ref"), str):
            assert part["$ref"].removeprefix("#/$defs/") in schema["$defs"]
        if isinstance(part.get("pattern"), str):
            re.compile(part["pattern"])


@pytest.mark.skipif(find_spec("jsonschema") is None, reason="the package jsonschema is not there")
def test_shipped_scenarios_fit_the_schema() -> None:
    """What runs is what the schema allows."""
    import jsonschema

    validator = jsonschema.Draft202012Validator(json_schema())
    errors = {
        name: [error.message for error in validator.iter_errors(load(name).document.data)]
        for name in shipped()
    }

    assert errors == {name: [] for name in shipped()}


def test_options_have_one_name() -> None:
    """`for_` is a name of the code, and no option."""
    assert refusal(with_entries("{at: 5s, pause: billing/1, for_: 3s}"))
