"""Who gets which partition: the vectors of the releases, the pages' example, and the laws."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, cycle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.scenarios.payload_samples import steady
from watchkeeper.model.actor.effects import Partition
from watchkeeper.model.group.assignment import (
    ASSIGNORS,
    Assignment,
    Assignor,
    TopicView,
    UnequalSubscriptions,
    View,
    assign,
    hash_order,
    share,
    sort_partitions,
    topic_view,
)
from watchkeeper.model.registry.paths import Layout, broker_of, partition_07
from watchkeeper.model.zookeeper.java_hash_order import string_hash

# --- saying what is seen ---------------------------------------------------------------


def seen(layout: Layout, **topics: tuple[Iterable[Partition], Sequence[str]]) -> View:
    """A view of these topics: partitions and the streams that want them."""
    return tuple(
        topic_view(name.replace("_", "-"), partitions, streams, layout)
        for name, (partitions, streams) in sorted(topics.items())
    )


def numbered(topic: str, count: int) -> list[Partition]:
    """The partitions of a topic in the 0.8 layout."""
    return [Partition(topic, str(index)) for index in range(count)]


def hosted(topic: str, brokers: Mapping[int, int]) -> list[Partition]:
    """The partitions of a topic in the 0.7 layout, by broker and number of partitions."""
    return [partition_07(topic, broker, at) for broker, n in brokers.items() for at in range(n)]


def one_topic(partitions: int, streams: int) -> View:
    """Topic `t` in the 0.8 layout, and streams whose order as strings is their number's."""
    return seen("0.8", t=(numbered("t", partitions), [f"s{at:03d}" for at in range(streams)]))


def names(assignment: Assignment) -> dict[str, list[str]]:
    """Stream -> the names of its partitions."""
    return {stream: [item.name for item in got] for stream, got in assignment.items()}


def all_of(view: View) -> Counter[Partition]:
    """Every partition of a view, once."""
    return Counter(partition for topic in view for partition in topic.partitions)


def given_out(assignment: Assignment) -> Counter[Partition]:
    """Every partition of an assignment, as often as it was given."""
    return Counter(chain.from_iterable(assignment.values()))


# --- range -----------------------------------------------------------------------------

RANGE_TABLE = {
    1: {0: "0+0", 1: "0+1", 2: "0+2", 3: "0+3", 4: "0+4", 5: "0+5", 7: "0+7", 8: "0+8"},
    2: {0: "0+0 0+0", 1: "0+1 1+0", 2: "0+1 1+1", 3: "0+2 2+1", 4: "0+2 2+2"}
    | {5: "0+3 3+2", 7: "0+4 4+3", 8: "0+4 4+4"},
    3: {0: "0+0 0+0 0+0", 1: "0+1 1+0 1+0", 2: "0+1 1+1 2+0", 3: "0+1 1+1 2+1"}
    | {4: "0+2 2+1 3+1", 5: "0+2 2+2 4+1", 7: "0+3 3+2 5+2", 8: "0+3 3+3 6+2"},
    4: {0: "0+0 0+0 0+0 0+0", 1: "0+1 1+0 1+0 1+0", 2: "0+1 1+1 2+0 2+0", 3: "0+1 1+1 2+1 3+0"}
    | {4: "0+1 1+1 2+1 3+1", 5: "0+2 2+1 3+1 4+1", 7: "0+2 2+2 4+2 6+1", 8: "0+2 2+2 4+2 6+2"},
    5: {0: "0+0 0+0 0+0 0+0 0+0", 1: "0+1 1+0 1+0 1+0 1+0", 2: "0+1 1+1 2+0 2+0 2+0"}
    | {3: "0+1 1+1 2+1 3+0 3+0", 4: "0+1 1+1 2+1 3+1 4+0", 5: "0+1 1+1 2+1 3+1 4+1"}
    | {7: "0+2 2+2 4+1 5+1 6+1", 8: "0+2 2+2 4+2 6+1 7+1"},
}
"""Streams -> partitions -> start and count of each position's share."""


@pytest.mark.parametrize(
    ("streams", "partitions", "shares"),
    [
        (streams, count, message)
        for streams, row in RANGE_TABLE.items()
        for count, message in row.items()
    ],
)
def test_range_deals_as_kafka_does(streams: int, partitions: int, shares: str) -> None:
    """Shares are contiguous, differ by one at most, and the first streams have the extra."""
    dealt = names(assign("range", one_topic(partitions, streams)))

    expected = {}
    for position, message in enumerate(shares.split()):
        start, count = map(int, message.split("+"))
        expected[f"s{position:03d}"] = [str(at) for at in range(start, start + count)]
    assert dealt == expected


def test_threads_sort_as_strings() -> None:
    """Thread 10 of a consumer comes before its thread 2, and takes its share before it."""
    threads = [f"c1-{number}" for number in range(12)]

    dealt = names(assign("range", seen("0.8", t=(numbered("t", 13), threads))))

    order = ["c1-0", "c1-1", "c1-10", "c1-11", *(f"c1-{number}" for number in range(2, 10))]
    assert list(dealt) == order
    assert [dealt[thread] for thread in order] == [
        ["0", "1"],
        *([str(at)] for at in range(2, 13)),
    ]


def test_partitions_of_07_sort_as_strings() -> None:
    """Broker 10 comes before broker 2, and its partition 10 before its partition 2."""
    listed = hosted("t", {2: 11, 10: 11})

    ordered = [partition.name for partition in sort_partitions(listed, "0.7")]

    at_broker = ["0", "1", "10", *(str(at) for at in range(2, 10))]
    assert ordered == [f"{broker}-{at}" for broker in (10, 2) for at in at_broker]


def test_shares_follow_the_string_order_of_07() -> None:
    """Three threads take 8, 7 and 7 of 22 partitions, cut in the order of strings."""
    view = seen("0.7", t=(hosted("t", {2: 11, 10: 11}), ["g_c0-0", "g_c1-0", "g_c2-0"]))

    dealt = names(assign("range", view))

    assert [len(share) for share in dealt.values()] == [8, 7, 7]
    assert dealt["g_c0-0"][-1] == "10-6"
    assert dealt["g_c1-0"][:4] == ["10-7", "10-8", "10-9", "2-0"]
    assert dealt["g_c2-0"][0] == "2-3"


def test_range_deals_each_topic_by_itself() -> None:
    """The first stream has the extra of every topic."""
    streams = ["a", "b"]
    view = seen("0.8", t1=(numbered("t1", 3), streams), t2=(numbered("t2", 1), streams))

    dealt = {stream: list(map(str, got)) for stream, got in assign("range", view).items()}

    assert dealt == {"a": ["t1/0", "t1/1", "t2/0"], "b": ["t1/2"]}


def test_range_serves_a_member_that_wants_a_topic() -> None:
    """A stream has no part in a topic that it does not want."""
    view = seen("0.8", t1=(numbered("t1", 2), ["a", "b"]), t2=(numbered("t2", 2), ["b"]))

    dealt = {stream: list(map(str, got)) for stream, got in assign("range", view).items()}

    assert dealt == {"a": ["t1/0"], "b": ["t1/1", "t2/0", "t2/1"]}


# --- round robin -----------------------------------------------------------------------

HASHES = {
    "[topic-1,0]": -1196313087,
    "[topic-1,1]": -1196313056,
    "[topic-1,2]": -1196313025,
    "[topic-1,3]": -1196312994,
    "[topic-2,0]": -1196283296,
    "[topic-2,1]": -1196283265,
    "[topic-2,2]": -1196283234,
    "[t10,0]": -1768803071,
    "[t10,1]": -1768803040,
    "[t1,0]": -1581082495,
    "[t1,1]": -1581082464,
    "[t2,0]": -1581052704,
    "[t2,1]": -1581052673,
    "[Aa,0]": -1626752098,
    "[BB,0]": -1626752098,
}


@pytest.mark.parametrize(("text", "value"), HASHES.items())
def test_texts_hash_as_in_java(text: str, value: int) -> None:
    """The order of round robin is that of these numbers."""
    assert string_hash(text) == value


def spelled(dealt: Assignment) -> dict[str, str]:
    """Stream -> its partitions as one line."""
    return {stream: " ".join(map(str, got)) for stream, got in dealt.items()}


@pytest.mark.parametrize("assignor", ["roundrobin", "roundrobin_11"])
def test_round_robin_deals_two_topics_to_three_threads(assignor: Assignor) -> None:
    """All partitions of all topics in the order of their hashes, dealt in turn."""
    threads = ["g1c1-0", "g1c1-1", "g1c2-0"]
    topics = {"topic_1": 4, "topic_2": 3}
    view = seen(
        "0.8", **{t: (numbered(t.replace("_", "-"), n), threads) for t, n in topics.items()}
    )

    assert spelled(assign(assignor, view)) == {
        "g1c1-0": "topic-1/0 topic-1/3 topic-2/2",
        "g1c1-1": "topic-1/1 topic-2/0",
        "g1c2-0": "topic-1/2 topic-2/1",
    }


@pytest.mark.parametrize("assignor", ["roundrobin", "roundrobin_11"])
def test_round_robin_is_in_the_order_of_hashes_and_not_of_names(assignor: Assignor) -> None:
    """Topic t10 comes before t1, since its hashes are smaller."""
    threads = ["g_c1-0", "g_c2-0", "g_c3-0"]
    view = seen("0.8", **{t: (numbered(t, 2), threads) for t in ("t1", "t2", "t10")})

    assert [str(partition) for partition in hash_order(view)] == [
        *("t10/0", "t10/1", "t1/0", "t1/1", "t2/0", "t2/1")
    ]
    assert spelled(assign(assignor, view)) == {
        "g_c1-0": "t10/0 t1/1",
        "g_c2-0": "t10/1 t2/0",
        "g_c3-0": "t1/0 t2/1",
    }


@pytest.mark.parametrize("assignor", ["roundrobin", "roundrobin_11"])
def test_round_robin_alternates_where_range_would_not(assignor: Assignor) -> None:
    """Two threads get every other partition."""
    view = seen("0.8", t=(numbered("t", 4), ["c1-0", "c2-0"]))

    assert spelled(assign(assignor, view)) == {"c1-0": "t/0 t/2", "c2-0": "t/1 t/3"}
    assert spelled(assign("range", view)) == {"c1-0": "t/0 t/1", "c2-0": "t/2 t/3"}


def test_round_robin_of_11_skips_who_does_not_want_a_topic() -> None:
    """The skipped thread has lost its turn; it is not put back."""
    view = seen("0.8", t1=(numbered("t1", 3), ["c1-0", "c2-0"]), t2=(numbered("t2", 3), ["c1-0"]))

    assert spelled(assign("roundrobin_11", view)) == {
        "c1-0": "t1/0 t1/2 t2/0 t2/1 t2/2",
        "c2-0": "t1/1",
    }


def test_round_robin_of_082_wants_equal_subscriptions() -> None:
    """Where topics have different streams, it says which, and refuses."""
    view = seen("0.8", t1=(numbered("t1", 3), ["c1-0", "c2-0"]), t2=(numbered("t2", 3), ["c1-0"]))

    with pytest.raises(UnequalSubscriptions) as refused:
        assign("roundrobin", view)

    assert str(refused.value) == (
        "round robin needs the same streams on every topic, but t1 has c1-0, c2-0 and t2 has c1-0"
    )


def test_equal_hashes_keep_the_order_of_topic_and_partition() -> None:
    """Kafka leaves ties to a hash map; here they are in an order that every member has."""
    threads = ["c1-0", "c2-0"]
    view = seen("0.8", Aa=(numbered("Aa", 2), threads), BB=(numbered("BB", 2), threads))

    assert list(map(str, hash_order(view))) == ["Aa/0", "BB/0", "Aa/1", "BB/1"]
    assert spelled(assign("roundrobin", view)) == {"c1-0": "Aa/0 Aa/1", "c2-0": "BB/0 BB/1"}


def test_a_group_without_topics_gets_nothing() -> None:
    """No topics is no error, for any assignor (in 0.8.2 round robin failed there)."""
    assert [assign(assignor, ()) for assignor in ASSIGNORS] == [{}] * len(ASSIGNORS)


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_topic_without_partitions_gives_nothing(assignor: Assignor) -> None:
    """Streams that get nothing are in the assignment, with nothing."""
    assert assign(assignor, one_topic(0, 2)) == {"s000": (), "s001": ()}


@pytest.mark.parametrize("assignor", ASSIGNORS)
def test_a_topic_that_no_member_wants_is_given_to_no_member(assignor: Assignor) -> None:
    """No streams is no error."""
    assert assign(assignor, one_topic(3, 0)) == {}


# --- Kafka's own tests, as steps -------------------------------------------------------


@pytest.mark.parametrize(
    ("brokers", "consumers", "owners"),
    [
        ({400: 1}, 1, {"400-0": 1}),
        ({400: 1}, 2, {"400-0": 1}),
        (
            {400: 1, 200: 2, 300: 2},
            2,
            {"200-0": 1, "200-1": 1, "300-0": 1, "300-1": 2, "400-0": 2},
        ),
        ({200: 2, 300: 2}, 2, {"200-0": 1, "200-1": 1, "300-0": 2, "300-1": 2}),
    ],
)
def test_load_is_balanced_as_brokers_and_consumers_come_and_go(
    brokers: dict[int, int], consumers: int, owners: dict[str, int]
) -> None:
    """The four steps of 0.7.2's load balancing test."""
    threads = [f"group1_consumer{number}-0" for number in range(1, consumers + 1)]
    view = seen("0.7", topic1=(hosted("topic1", brokers), threads))

    owned = {item.name: thread for thread, got in assign("range", view).items() for item in got}

    assert owned == {name: f"group1_consumer{number}-0" for name, number in owners.items()}


@pytest.mark.parametrize(
    ("consumers", "owners"),
    [
        ([1], {"0": "group1_consumer1-0", "1": "group1_consumer1-0"}),
        ([1, 2], {"0": "group1_consumer1-0", "1": "group1_consumer2-0"}),
    ],
)
def test_two_partitions_go_to_one_consumer_and_then_to_two(
    consumers: list[int], owners: dict[str, str]
) -> None:
    """The steps of 0.8.2's connector test and of 1.1's listener test, for all members at once."""
    threads = [f"group1_consumer{number}-0" for number in consumers]
    view = seen("0.8", topic1=(numbered("topic1", 2), threads))

    owned = {item.name: thread for thread, got in assign("range", view).items() for item in got}

    assert owned == owners


def test_five_partitions_go_to_two_consumers_of_two_threads() -> None:
    """The example of the assignor's own documentation."""
    view = seen("0.8", t=(numbered("t", 5), ["C1-0", "C1-1", "C2-0", "C2-1"]))

    dealt = names(assign("range", view))

    assert dealt == {"C1-0": ["0", "1"], "C1-1": ["2"], "C2-0": ["3"], "C2-1": ["4"]}


Group = dict[str, dict[str, int]]
"""Consumer -> topic -> streams."""


def view_of(group: Group, partitions: Mapping[str, int]) -> View:
    """What every member of a group sees."""
    streams: dict[str, list[str]] = {topic: [] for topic in partitions}
    for consumer, wanted in group.items():
        for topic, number in wanted.items():
            streams[topic].extend(f"{consumer}-{at}" for at in range(number))
    return tuple(
        topic_view(topic, numbered(topic, count), streams[topic], "0.8")
        for topic, count in sorted(partitions.items())
    )


def computed_by_each(assignor: Assignor, group: Group, view: View) -> Assignment:
    """Every member computes its own share; put together."""
    together: Assignment = {}
    for consumer, wanted in group.items():
        own = [f"{consumer}-{at}" for at in range(max(wanted.values(), default=0))]
        together.update(share(assignor, view, own))
    return together


def is_uniform(dealt: Assignment) -> bool:
    """Whether shares differ by one at most, those of nothing included."""
    sizes = [len(got) for got in dealt.values()]
    return max(sizes) - min(sizes) <= 1


def scenario(seed: int) -> tuple[random.Random, list[str], dict[str, int]]:
    """A scenario of Kafka's test: consumers, and topics with their partitions."""
    chance = random.Random(seed)
    consumers = [f"g1c{number + 1}" for number in range(max(1, chance.randrange(11)))]
    topics = {
        f"topic-{number + 1}": max(8, chance.randrange(120))
        for number in range(max(20, chance.randrange(101)))
    }
    return chance, consumers, topics


@pytest.mark.parametrize("assignor", ["roundrobin", "roundrobin_11"])
@pytest.mark.parametrize("seed", range(3))
def test_round_robin_serves_filters(assignor: Assignor, seed: int) -> None:
    """Every member takes every topic, with streams of its own number: unique, cover, uniform."""
    chance, consumers, topics = scenario(seed)
    group = {
        consumer: dict.fromkeys(topics, max(1, chance.randrange(9))) for consumer in consumers
    }
    view = view_of(group, topics)

    dealt = computed_by_each(assignor, group, view)

    assert given_out(dealt) == all_of(view)
    assert is_uniform(dealt)


@pytest.mark.parametrize("seed", range(3))
def test_round_robin_serves_equal_subscriptions(seed: int) -> None:
    """One stream of every topic for every member: unique, cover, uniform."""
    _, consumers, topics = scenario(seed)
    group = {consumer: dict.fromkeys(topics, 1) for consumer in consumers}
    view = view_of(group, topics)

    dealt = computed_by_each("roundrobin_11", group, view)

    assert given_out(dealt) == all_of(view)
    assert is_uniform(dealt)


@pytest.mark.parametrize("seed", range(3))
def test_round_robin_serves_unequal_subscriptions(seed: int) -> None:
    """Members that leave out up to four of ten topics: unique, cover."""
    count = max(5, random.Random(seed).randrange(11))
    group = unbalanced(count)
    view = view_of(group, dict.fromkeys(TEN, 10))

    assert given_out(computed_by_each("roundrobin_11", group, view)) == all_of(view)


TEN = [f"topic-{number}" for number in range(1, 11)]


def unbalanced(consumers: int) -> Group:
    """Kafka's unbalanced group: member i leaves out the last i mod 5 topics."""
    return {
        f"g1c{number}": dict.fromkeys(TEN[: 10 - number % 5], 3)
        for number in range(1, consumers + 1)
    }


def test_the_unbalanced_group_of_five() -> None:
    """Fifteen threads for a hundred partitions; topic-10 has only three of them."""
    group = unbalanced(5)
    view = view_of(group, dict.fromkeys(TEN, 10))

    dealt = computed_by_each("roundrobin_11", group, view)

    assert [len(wanted) for wanted in group.values()] == [9, 8, 7, 6, 10]
    assert (len(dealt), given_out(dealt).total()) == (15, 100)
    assert given_out(dealt) == all_of(view)
    takers = {
        thread for thread, got in dealt.items() if any(item.topic == "topic-10" for item in got)
    }
    assert takers == {"g1c5-0", "g1c5-1", "g1c5-2"}


@pytest.mark.parametrize("seed", range(3))
def test_range_serves_streams_by_topic(seed: int) -> None:
    """Every member takes every topic with another number of streams: unique, cover."""
    chance, consumers, topics = scenario(seed)
    group = {consumer: {t: max(1, chance.randrange(9)) for t in topics} for consumer in consumers}
    view = view_of(group, topics)

    assert given_out(computed_by_each("range", group, view)) == all_of(view)


# --- the pages' worked example ---------------------------------------------------------

ONE_EACH = ["node1-0", "node2-0", "node3-0"]
TWO_EACH = ["node1-0", "node1-1", "node2-0", "node2-1", "node3-0", "node3-1"]


@pytest.mark.parametrize(
    ("assignor", "streams", "by_node"),
    [
        ("range", ONE_EACH, {"node1": "01", "node2": "2", "node3": "3"}),
        ("range", TWO_EACH, {"node1": "01", "node2": "23", "node3": ""}),
        ("range_ceil", ONE_EACH, {"node1": "01", "node2": "23", "node3": ""}),
        ("range_ceil", TWO_EACH, {"node1": "01", "node2": "23", "node3": ""}),
        ("range_floor", ONE_EACH, {"node1": "0", "node2": "1", "node3": "2"}),
        ("range_floor", TWO_EACH, {"node1": "", "node2": "", "node3": ""}),
        ("range", ["C0-0", "C1-0"], {"C0": "01", "C1": "23"}),
        ("range_ceil", ["C0-0", "C1-0"], {"C0": "01", "C1": "23"}),
        ("range_floor", ["C0-0", "C1-0"], {"C0": "01", "C1": "23"}),
    ],
)
def test_report_log_has_four_partitions(
    assignor: Assignor, streams: list[str], by_node: dict[str, str]
) -> None:
    """The worked example: range gives what the page says, the page's own formulas do not."""
    view = seen("0.8", report_log=(numbered("report-log", 4), streams))

    dealt = names(assign(assignor, view))

    together = dict.fromkeys(by_node, "")
    for stream, got in dealt.items():
        together[stream.partition("-")[0]] += "".join(got)
    assert together == by_node


# --- laws ------------------------------------------------------------------------------

FAIR: tuple[Assignor, ...] = ("range", "roundrobin", "roundrobin_11")
stream_sets = st.lists(
    st.builds(lambda consumer, at: f"g_c{consumer}-{at}", st.integers(0, 12), st.integers(0, 11)),
    unique=True,
    max_size=9,
)


Listing = tuple[Layout, dict[str, tuple[list[Partition], list[str]]]]
"""What there is: layout, and for each topic its partitions and streams, in any order."""


@st.composite
def listings(draw: st.DrawFn, *, equal: bool) -> Listing:
    """What there may be; if `equal`, every member wants every topic."""
    layout: Layout = draw(st.sampled_from(["0.7", "0.8"]))
    common = draw(stream_sets)
    topics = draw(
        st.lists(st.sampled_from(["Aa", "BB", "t", "t1", "t10", "topic-1"]), unique=True)
    )
    found: dict[str, tuple[list[Partition], list[str]]] = {}
    for topic in topics:
        numbers = draw(st.lists(st.integers(0, 1500), unique=True, max_size=25))
        if layout == "0.7":
            parts = [partition_07(topic, (7, 200, 300)[at % 3], at) for at in numbers]
        else:
            parts = [Partition(topic, str(at)) for at in numbers]
        found[topic] = (parts, common if equal else draw(stream_sets))
    return layout, found


def viewed(listing: Listing) -> View:
    """The view that follows from what there is."""
    layout, topics = listing
    return tuple(topic_view(name, *topics[name], layout) for name in sorted(topics))


equal_views = listings(equal=True).map(viewed)
any_views = listings(equal=False).map(viewed)


def wanted(view: View) -> Counter[Partition]:
    """Every partition of a topic that a member wants, once."""
    return all_of(tuple(topic for topic in view if topic.streams))


@pytest.mark.parametrize("assignor", FAIR)
@given(view=equal_views)
@steady
def test_every_partition_has_one_owner(assignor: Assignor, view: View) -> None:
    """No partition is given twice, and none is forgotten, if there is anybody at all."""
    assert given_out(assign(assignor, view)) == wanted(view)


@pytest.mark.parametrize("assignor", ["range", "range_ceil", "roundrobin_11"])
@given(view=any_views)
@steady
def test_every_partition_has_one_owner_among_those_who_want_it(
    assignor: Assignor, view: View
) -> None:
    """Subscriptions may differ: a member that gets a partition wants its topic."""
    dealt = assign(assignor, view)

    takers = {topic.topic: set(topic.streams) for topic in view}
    assert given_out(dealt) == wanted(view)
    assert all(stream in takers[item.topic] for stream, got in dealt.items() for item in got)


@given(any_views)
@steady
def test_range_is_balanced_in_each_topic(view: View) -> None:
    """Of one topic, streams hold numbers of partitions that differ by one at most."""
    for topic in view:
        assert not topic.streams or is_uniform(assign("range", (topic,)))


@pytest.mark.parametrize("assignor", ["roundrobin", "roundrobin_11"])
@given(view=equal_views)
@steady
def test_round_robin_is_balanced_over_all_topics(assignor: Assignor, view: View) -> None:
    """Of all topics together, streams hold numbers of partitions that differ by one at most."""
    dealt = assign(assignor, view)

    assert not dealt or is_uniform(dealt)


@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(listing=listings(equal=True), chance=st.randoms(use_true_random=False))
@steady
def test_the_order_of_what_was_read_does_not_matter(
    assignor: Assignor,
    listing: Listing,
    chance: random.Random,
) -> None:
    """ZooKeeper lists children in no order: members agree nonetheless."""
    layout, topics = listing
    shuffled = {
        name: (chance.sample(parts, len(parts)), chance.sample(streams, len(streams)))
        for name, (parts, streams) in topics.items()
    }

    assert assign(assignor, viewed((layout, shuffled))) == assign(assignor, viewed(listing))


@pytest.mark.parametrize("assignor", ASSIGNORS)
@given(view=equal_views, others=stream_sets)
@steady
def test_a_member_computes_its_own_share_as_the_others_do(
    assignor: Assignor, view: View, others: list[str]
) -> None:
    """`share` says of any streams, even of some that are not there, what `assign` says."""
    shares = assign(assignor, view)
    mine = sorted({*list(shares)[:3], *others})

    assert share(assignor, view, mine) == {
        partition: shares.get(partition, ()) for partition in mine
    }


@given(
    st.dictionaries(st.integers(0, 400), st.integers(1, 9), min_size=1, max_size=8),
    st.integers(1, 12),
)
@steady
def test_range_saves_connections_where_partitions_are_clustered(
    brokers: dict[int, int], streams: int
) -> None:
    """In clustered order, connections lie between max(B, S) and B + S - 1."""
    view = seen("0.7", t=(hosted("t", brokers), [f"s{at:02d}" for at in range(streams)]))

    dealt = {stream: got for stream, got in assign("range", view).items() if got}

    connections = sum(len({broker_of(item) for item in got}) for got in dealt.values())
    assert max(len(brokers), len(dealt)) <= connections <= len(brokers) + len(dealt) - 1


# --- the pages' formulas, and how they fail --------------------------------------------

many = st.integers(0, 60)
some = st.integers(1, 20)


@given(many, some)
@steady
def test_rounding_down_orphans_what_does_not_divide(partitions: int, streams: int) -> None:
    """N = P / S rounded down: the last P mod S partitions belong to no member."""
    view = one_topic(partitions, streams)

    orphans = all_of(view) - given_out(assign("range_floor", view))

    first = partitions - partitions % streams
    assert sorted(int(orphan.name) for orphan in orphans) == list(range(first, partitions))


@given(st.integers(0, 19), st.integers(1, 20))
@steady
def test_rounding_down_leaves_a_large_group_with_nothing(partitions: int, more: int) -> None:
    """With more streams than partitions N is 0, and no member gets anything."""
    view = one_topic(partitions, partitions + more)

    assert not given_out(assign("range_floor", view))


@given(many, some)
@steady
def test_rounding_up_orphans_nothing(partitions: int, streams: int) -> None:
    """N = P / S rounded up: every partition has one owner."""
    view = one_topic(partitions, streams)

    assert given_out(assign("range_ceil", view)) == all_of(view)


@given(st.integers(3, 12), st.integers(2, 6))
@steady
def test_rounding_up_leaves_streams_idle_while_others_hold_two(streams: int, each: int) -> None:
    """With S * (N - 1) + 1 partitions the last stream gets nothing as soon as N <= S - 1."""
    partitions = streams * (each - 1) + 1
    sizes = [len(got) for got in assign("range_ceil", one_topic(partitions, streams)).values()]

    assert sizes[0] == each
    assert (sizes[-1] == 0) == (each * (streams - 1) >= partitions)


def test_rounding_up_gives_the_third_of_three_nothing() -> None:
    """Four partitions, three streams: 2, 2 and 0, where 2, 1 and 1 is possible."""
    view = one_topic(4, 3)

    assert [len(got) for got in assign("range_ceil", view).values()] == [2, 2, 0]
    assert not is_uniform(assign("range_ceil", view))
    assert [len(got) for got in assign("range", view).values()] == [2, 1, 1]


# --- against a naive implementation ----------------------------------------------------


def naive_hash_order(view: View) -> list[Partition]:
    """All partitions by the Java hash of their texts, one by one."""
    listed = [partition for topic in view for partition in topic.partitions]
    return sorted(listed, key=lambda item: string_hash(f"[{item.topic},{item.name}]"))


def naive_round_robin(view: View) -> Assignment:
    """Deal card by card; who does not want a card is passed over."""
    takers = {topic.topic: topic.streams for topic in view}
    streams = sorted({stream for topic in view for stream in topic.streams})
    dealt: dict[str, list[Partition]] = {stream: [] for stream in streams}
    turns = cycle(streams)
    for partition in naive_hash_order(view):
        if takers[partition.topic]:
            taker = next(stream for stream in turns if stream in takers[partition.topic])
            dealt[taker].append(partition)
    return {stream: tuple(got) for stream, got in dealt.items()}


@given(any_views)
@steady
def test_hash_order_is_what_one_hash_at_a_time_gives(view: View) -> None:
    """Hashing heads and tails apart changes no place."""
    assert hash_order(view) == naive_hash_order(view)


@given(any_views)
@steady
def test_round_robin_of_11_is_what_one_card_at_a_time_gives(view: View) -> None:
    """Dealing whole runs by slices changes no share."""
    assert assign("roundrobin_11", view) == naive_round_robin(view)


@given(equal_views)
@steady
def test_round_robin_of_082_is_what_one_card_at_a_time_gives(view: View) -> None:
    """Where subscriptions are equal, no member is passed over."""
    assert assign("roundrobin", view) == naive_round_robin(view)


@given(st.text(" [,]019-aé\U0001f600", max_size=6), st.lists(st.text("0189-", max_size=7)))
@steady
def test_names_of_any_length_hash_alike(topic: str, names: list[str]) -> None:
    """Names shorter than a tail, or no numbers, and odd topics are hashed all the same."""
    view = (TopicView(topic, tuple(Partition(topic, name) for name in names), ("s",)),)

    assert hash_order(view) == naive_hash_order(view)


def test_a_hundred_thousand_partitions_are_dealt_alike() -> None:
    """Size changes nothing: long names wrap around 32 bits many times."""
    streams = [f"s{at:03d}" for at in range(97)]
    view = seen(
        "0.8", t1=(numbered("t1", 60_000), streams), t2=(numbered("t2", 40_000), streams[1:])
    )

    assert assign("roundrobin_11", view) == naive_round_robin(view)
