"""Compressed messages in a simulation: what is stored, at which offsets, and what is repeated."""

from __future__ import annotations

from dataclasses import replace

import pytest

from watchkeeper.model.delivery.message_id import payload_of
from watchkeeper.model.judgement.judge import judge
from watchkeeper.model.log.format.codecs import CODECS_07, Codec, compress
from watchkeeper.model.log.format.message_07 import Message
from watchkeeper.model.log.format.message_set_07 import encode
from watchkeeper.model.properties.verdicts import Verdict
from watchkeeper.model.trace.kinds import EventKind
from watchkeeper.model.trace.trace import Trace
from watchkeeper.scenarios import from_text
from watchkeeper.sim.engine.latency_profile import DEFAULT, Profile
from watchkeeper.sim.world import Simulated, simulate

SCENARIO = """
name: compressed
about: messages in compressed sets
clusters:
  main:
    zookeeper: {{servers: 1}}
    brokers: 1
    storage: {{config: {{log.flush.interval: 1{broker}}}}}
    topics: {{clicks: {{partitions_per_broker: 1}}, views: {{partitions_per_broker: 1}}}}
producers:
  web: {{config: {{compression.codec: {codec}, producer.type: async, queue.time: 50{producer}}}}}
groups:
  billing:
    consumers: 1
    streams: {{clicks: 1}}
    guarantee: at least once
    handling: {{each: 5ms, commits: after}}
    config: {{auto.commit.enable: false}}
timeline:
  - {{at: 2s, produce: clicks, rate: 1000/s, size: 300B, for: 1s}}
{faults}settle: 12s
"""
MESSAGES = 900
PLAIN_BYTES = MESSAGES * 310
RESTART = """  - {at: 4s, crash: billing/0}
  - {at: 5s, restart: billing/0}
"""


def compressed(
    codec: int,
    *,
    producer: str = "",
    broker: str = "",
    faults: str = "",
    profile: Profile = DEFAULT,
) -> Simulated:
    """Run a producer with a codec, and a slow consumer."""
    text = SCENARIO.format(codec=codec, producer=producer, broker=broker, faults=faults)
    plan = from_text("compressed.yaml", text).plan("hardened")
    run = simulate(plan, 3, profile=profile)
    violated = [
        finding.claim.name
        for finding in judge(plan, run.trace, run.effects).findings
        if finding.verdict is Verdict.VIOLATED and finding.counts
    ]
    assert violated == []
    return run


def stored(trace: Trace) -> list[list[object]]:
    """What the broker stored: producer, first, end, from, to, and whether in one entry."""
    return [
        message_range
        for event in trace.of_kind(EventKind.STORED)
        for message_range in event.detail["ranges"]
    ]


def log_bytes(trace: Trace) -> int:
    """The size of the log."""
    return max(int(str(message_range[4])) for message_range in stored(trace))


def consumed(trace: Trace) -> list[tuple[int, int]]:
    """The numbers of the messages that the consumer was handed."""
    return [
        (first, end)
        for event in trace.of_kind(EventKind.CONSUMED)
        for _, first, end, *_ in event.detail["ranges"]
    ]


@pytest.mark.parametrize("codec", [Codec.GZIP, Codec.SNAPPY])
def test_a_compressed_set_is_one_entry_as_large_as_the_codec_makes_it(codec: Codec) -> None:
    """Within a quarter of what the real codec makes of the messages of a live producer."""
    run = compressed(codec)
    ranges = stored(run.trace)

    assert {message_range[5] for message_range in ranges} == {True}
    assert (
        sum(int(str(message_range[2])) - int(str(message_range[1])) for message_range in ranges)
        == MESSAGES
    )
    for _, first, end, at, to, _ in ranges:
        numbers = range(int(str(first)), int(str(end)))
        plain = encode([Message.of(payload_of("web-0", number, 300)) for number in numbers])
        size_bytes = int(str(to)) - int(str(at)) - 10
        assert size_bytes == pytest.approx(len(compress(codec, plain)), rel=0.25)


def test_codecs_differ_in_what_they_store() -> None:
    """Of the same messages: 310 bytes each without a codec."""
    sizes = [log_bytes(compressed(codec).trace) for codec in sorted(CODECS_07)]

    assert sizes[Codec.NONE] == PLAIN_BYTES
    assert sizes[Codec.GZIP] < sizes[Codec.SNAPPY] < sizes[Codec.NONE] / 5


@pytest.mark.parametrize("codec", sorted(CODECS_07))
def test_a_consumer_that_restarts_within_a_set_reads_all_of_it_again(codec: Codec) -> None:
    """A committed offset is that of the set; without a codec, that of the next message."""
    run = compressed(codec, faults=RESTART)
    ranges = consumed(run.trace)
    crashed = next(event.seq for event in run.trace.of_kind(EventKind.ENDED))
    before = [
        end
        for event in run.trace.of_kind(EventKind.CONSUMED)
        if event.seq < crashed
        for _, _, end, *_ in event.detail["ranges"]
    ]
    begun_again = ranges[len(before)][0]
    firsts = {int(str(message_range[1])) for message_range in stored(run.trace)}

    assert before[-1] < MESSAGES
    assert (begun_again in firsts) == (codec is not Codec.NONE)
    assert ranges[-1][1] == MESSAGES


def test_a_slow_codec_delays_what_it_compresses_and_decompresses() -> None:
    """At the producer, at the broker that checks sets, and at the consumer."""

    def first_stored_us(run: Simulated) -> int:
        return next(run.trace.of_kind(EventKind.STORED)).t_us

    def slow(**rates: int) -> Profile:
        return replace(DEFAULT, gzip=replace(DEFAULT.gzip, **rates))

    usual = compressed(1)
    compressing = compressed(1, profile=slow(compress_bytes_per_s=200_000))
    checking = compressed(1, profile=slow(decompress_bytes_per_s=200_000))
    trusting = compressed(
        1, profile=slow(decompress_bytes_per_s=200_000), broker=", log.check.compressed: false"
    )

    assert first_stored_us(compressing) > first_stored_us(usual) + 50_000
    assert first_stored_us(checking) > first_stored_us(usual) + 50_000
    assert first_stored_us(trusting) < first_stored_us(usual) + 50_000
    first_consumed_us = [
        next(run.trace.of_kind(EventKind.CONSUMED)).t_us for run in (usual, trusting)
    ]
    assert first_consumed_us[1] > first_consumed_us[0] + 50_000


def test_only_the_topics_that_are_named_are_compressed() -> None:
    """All of them, if none is."""
    named = compressed(1, producer=", compressed.topics: clicks")
    unnamed = compressed(1, producer=", compressed.topics: views")

    assert log_bytes(named.trace) < log_bytes(unnamed.trace) == PLAIN_BYTES


def test_a_wrapper_that_is_too_large_is_refused_by_its_stored_size() -> None:
    """Messages that are larger are accepted, if they are small when they are compressed."""
    run = compressed(1, producer=", max.message.size: 200, batch.size: 5")

    assert log_bytes(run.trace) < PLAIN_BYTES
    assert not list(run.trace.of_kind(EventKind.SEND_FAILED))
