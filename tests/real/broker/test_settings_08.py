"""The settings of a broker of 0.8: those of offsets and of compaction."""

from __future__ import annotations

from typing import Any

import pytest

from watchkeeper.model.log_08.cleaner_settings import CleanerSettings
from watchkeeper.model.log_08.settings import KeyedLogSettings
from watchkeeper.model.offset_manager.settings import OFFSETS_TOPIC, OffsetSettings
from watchkeeper.real.broker.settings_08 import BrokerSettings08, broker_settings_08


def settings(**given: Any) -> BrokerSettings08:
    """The settings, with underscores in place of dots."""
    named = {key.replace("_", "."): value for key, value in given.items()}
    return broker_settings_08({"log.dirs": "logs", **named})


def of_logs(found: BrokerSettings08, topic: str) -> KeyedLogSettings:
    """The settings of the logs of a topic."""
    own = found.logs.of(topic)
    assert isinstance(own, KeyedLogSettings)
    return own


def test_the_topic_of_offsets_is_compacted_and_has_its_own_segments() -> None:
    found = settings(log_segment_bytes="5000")

    assert (found.offsets, found.cleaner) == (OffsetSettings(), CleanerSettings())
    offsets, clicks = of_logs(found, OFFSETS_TOPIC), of_logs(found, "clicks")
    assert (offsets.is_compacted, offsets.segment_bytes) == (True, 100 * 1024 * 1024)
    assert (offsets.partitions, clicks.partitions) == (50, 1)
    assert (clicks.is_compacted, clicks.segment_bytes) == (False, 5000)


def test_values_are_read_in_the_units_of_their_keys() -> None:
    found = settings(
        offsets_retention_minutes="2",
        offsets_topic_num_partitions=7,
        offset_metadata_max_bytes="0",
        log_cleaner_enable="true",
        log_cleaner_min_cleanable_ratio="0.25",
        log_cleaner_delete_retention_ms="0",
        log_cleanup_policy="compact",
    )

    assert found.offsets == OffsetSettings(7, retention_ms=120_000, largest_metadata=0)
    assert found.cleaner == CleanerSettings(True, min_dirty_ratio=0.25, delete_retention_ms=0)
    assert of_logs(found, "clicks").is_compacted


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"log_cleanup_policy": "compat"}, "expected delete or compact"),
        ({"log_cleaner_enable": "yes"}, "expected true or false"),
        ({"log_cleaner_min_cleanable_ratio": "2"}, "a number from 0 to 1"),
        ({"log_cleaner_min_cleanable_ratio": "nan"}, "a number from 0 to 1"),
        ({"offsets_topic_num_partitions": "0"}, "from 1 to"),
        ({"offsets_retention_minute": "1"}, "not a setting"),
    ],
)
def test_a_wrong_value_is_refused_in_a_sentence(given: dict[str, Any], says: str) -> None:
    with pytest.raises(ValueError, match=says):
        settings(**given)
