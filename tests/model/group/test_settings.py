"""Consumer settings: the names and defaults of both releases, and what is said of wrong ones."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.scenarios.payload_samples import json_values, steady
from watchkeeper.model.group.settings import KEYS, SETTINGS, Release, consumer_settings, setting

# field: name and default in 0.7.2, name and default in 0.8.2, another value
TABLE: dict[str, tuple[str, Any, str, Any, Any]] = {
    "session_timeout_ms": ("zk.sessiontimeout.ms", 6000, "zookeeper.session.timeout.ms", 6000, 1),
    "sync_time_ms": ("zk.synctime.ms", 2000, "zookeeper.sync.time.ms", 2000, 1),
    "rebalance_retries": ("rebalance.retries.max", 4, "rebalance.max.retries", 4, 1),
    "rebalance_backoff_ms": ("rebalance.backoff.ms", 2000, "rebalance.backoff.ms", 2000, 1),
    "auto_commit": ("autocommit.enable", True, "auto.commit.enable", True, False),
    "auto_commit_interval_ms": (
        *("autocommit.interval.ms", 10_000, "auto.commit.interval.ms", 60_000),
        1,
    ),
    "auto_offset_reset": (
        *("autooffset.reset", "smallest", "auto.offset.reset", "largest"),
        "largest",
    ),
    "exclude_internal_topics": (
        *("exclude.internal.topics", True, "exclude.internal.topics", True),
        False,
    ),
    "assignor": (
        *("partition.assignment.strategy", "range", "partition.assignment.strategy", "range"),
        "roundrobin",
    ),
    "fetch_bytes": ("fetch.size", 1_048_576, "fetch.message.max.bytes", 1_048_576, 1),
    "fetch_min_bytes": ("fetch.min.bytes", 1, "fetch.min.bytes", 1, 0),
    "fetch_wait_ms": ("fetch.wait.max.ms", 100, "fetch.wait.max.ms", 100, 0),
    "fetch_backoff_ms": ("fetcher.backoff.ms", 1000, "refresh.leader.backoff.ms", 200, 1),
    "queued_chunks": ("queuedchunks.max", 10, "queued.max.message.chunks", 2, 1),
    "socket_timeout_ms": ("socket.timeout.ms", 30_000, "socket.timeout.ms", 30_000, 1),
    "consumer_timeout_ms": ("consumer.timeout.ms", -1, "consumer.timeout.ms", -1, 0),
    "offsets_storage": (
        *("offsets.storage", "zookeeper", "offsets.storage", "zookeeper"),
        "kafka",
    ),
    "dual_commit": ("dual.commit.enabled", False, "dual.commit.enabled", False, True),
    "offsets_backoff_ms": (
        *("offsets.channel.backoff.ms", 1000, "offsets.channel.backoff.ms", 1000),
        1,
    ),
    "offsets_timeout_ms": (
        *("offsets.channel.socket.timeout.ms", 10_000),
        *("offsets.channel.socket.timeout.ms", 10_000),
        1,
    ),
    "offsets_retries": ("offsets.commit.max.retries", 5, "offsets.commit.max.retries", 5, 0),
}
RELEASES: tuple[Release, ...] = ("0.7.2", "0.8.2")


def test_the_table_has_every_setting() -> None:
    """A setting that is added has to be written down here as well."""
    assert list(TABLE) == [row.field for row in SETTINGS]


def test_dual_commit_follows_the_storage_unless_it_is_given() -> None:
    """As shipped: it is on where offsets are kept in Kafka."""
    kafka = {"offsets.storage": "kafka"}
    assert not consumer_settings("0.8.2").dual_commit
    assert consumer_settings("0.8.2", kafka).dual_commit
    assert not consumer_settings("0.8.2", {**kafka, "dual.commit.enabled": False}).dual_commit


@pytest.mark.parametrize("field", TABLE)
def test_settings_are_called_what_the_releases_call_them(field: str) -> None:
    """The names of 0.7.2 and of 0.8.2."""
    [row] = [row for row in SETTINGS if row.field == field]

    assert (row.key_07, row.key_08) == (TABLE[field][0], TABLE[field][2])


@pytest.mark.parametrize("field", TABLE)
def test_settings_have_the_defaults_of_the_releases(field: str) -> None:
    """The defaults of 0.7.2 and of 0.8.2."""
    defaults = tuple(getattr(consumer_settings(release), field) for release in RELEASES)

    assert defaults == (TABLE[field][1], TABLE[field][3])


@pytest.mark.parametrize("release", RELEASES)
@pytest.mark.parametrize("field", TABLE)
def test_either_name_is_understood(field: str, release: Release) -> None:
    """A setting may be given by the name of either release, whichever runs."""
    old, _, new, _, value = TABLE[field]

    assert getattr(consumer_settings(release, {old: value}), field) == value
    assert getattr(consumer_settings(release, {new: value}), field) == value


def test_the_back_off_is_the_sync_time_unless_it_is_given() -> None:
    """A longer sync time means longer pauses, as shipped."""
    follows = consumer_settings("0.8.2", {"zookeeper.sync.time.ms": 700})
    own = consumer_settings("0.8.2", {"zookeeper.sync.time.ms": 700, "rebalance.backoff.ms": 50})

    assert (follows.rebalance_backoff_ms, own.rebalance_backoff_ms) == (700, 50)


def test_every_setting_is_explained() -> None:
    """The table says of each setting what it does."""
    assert all(row.about for row in SETTINGS)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (
            "zookeeper.sesion.timeout.ms",
            5,
            "zookeeper.sesion.timeout.ms is not a setting that these consumers have; did you "
            "mean zookeeper.session.timeout.ms?",
        ),
        (
            "rebalance.retries",
            5,
            "rebalance.retries is not a setting that these consumers have; did you mean "
            "rebalance.retries.max?",
        ),
        (
            "zookeeper.session.timeout.ms",
            "5s",
            "zookeeper.session.timeout.ms is '5s'; expected a whole number of at least 1",
        ),
        (
            "rebalance.max.retries",
            0,
            "rebalance.max.retries is 0; expected a whole number of at least 1",
        ),
        (
            "rebalance.backoff.ms",
            None,
            "rebalance.backoff.ms is None; expected a whole number of at least 1",
        ),
        (
            "zk.synctime.ms",
            True,
            "zk.synctime.ms is True; expected a whole number of at least 1",
        ),
        ("auto.commit.enable", "yes", "auto.commit.enable is 'yes'; expected true or false"),
        ("auto.commit.enable", 1, "auto.commit.enable is 1; expected true or false"),
        (
            "auto.offset.reset",
            "smalest",
            "auto.offset.reset is 'smalest'; expected one of smallest, largest; did you mean "
            "smallest?",
        ),
        (
            "auto.offset.reset",
            "none",
            "auto.offset.reset is 'none'; expected one of smallest, largest",
        ),
        (
            "partition.assignment.strategy",
            "round_robin",
            "partition.assignment.strategy is 'round_robin'; expected one of range, roundrobin, "
            "roundrobin_11; did you mean roundrobin?",
        ),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(key: str, value: Any, message: str) -> None:
    """The key, the value, what was expected, and the nearest word there is."""
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the whole sentence is compared
        consumer_settings("0.8.2", {key: value})

    assert str(refused.value) == message


def test_text_stands_for_what_it_says() -> None:
    """A file of Kafka's settings holds nothing else."""
    texts = {
        "zookeeper.session.timeout.ms": "4000",
        "auto.commit.enable": "false",
        "auto.offset.reset": "smallest",
    }
    values: dict[str, Any] = {**texts, "zookeeper.session.timeout.ms": 4000}
    values["auto.commit.enable"] = False

    assert consumer_settings("0.8.2", texts) == consumer_settings("0.8.2", values)
    assert consumer_settings("0.8.2", texts).session_timeout_ms == 4000


def test_a_word_like_none_of_them_gets_the_list() -> None:
    """Where no name is near, all names are given."""
    with pytest.raises(ValueError, match="; expected one of ") as refused:
        setting("xyz")

    assert all(row.key_08 in str(refused.value) for row in SETTINGS)


@given(st.sampled_from(sorted(KEYS)) | st.text(max_size=20), json_values)
@steady
def test_any_value_is_taken_or_refused_in_a_sentence(key: str, value: Any) -> None:
    """Whatever stands in a file, the answer is settings or a sentence with the key in it."""
    assert refusal(key, value) in ("", f"{key} is ")


def refusal(key: str, value: Any) -> str:
    """How the sentence begins that refuses a value; empty where it is taken."""
    try:
        consumer_settings("0.7.2", {key: value})
    except ValueError as error:
        return str(error)[: len(key) + 4]
    return ""
