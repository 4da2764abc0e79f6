"""Logs of Kafka's own broker are loaded, and its own tool reads those that are written here."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from tests.support.live.kafka import KafkaBroker
from watchkeeper.cli.main import run_command
from watchkeeper.model.log.format.codecs import Codec
from watchkeeper.model.log.format.message_08 import KeyedMessage, wrap
from watchkeeper.real.zookeeper.ensemble import Ensemble

WORDS = tuple(f"message {number} " + "again and " * 20 for number in range(30))


@pytest.mark.slow
@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4"])
def test_both_read_the_log_of_the_other(zookeeper: Ensemble, tmp_path: Path, codec: str) -> None:
    """Kafka 0.8.2.2, which writes a wrong checksum into the header of lz4, and expects it."""
    broker = KafkaBroker("0.8.2.2", f"{zookeeper.hosts}/logs-{codec}", tmp_path)
    with broker.running():
        broker.produce("clicks", *WORDS, codec=codec)
    assert run_command(["load", str(broker.logs), str(tmp_path / "out")]) == 0
    tables = [pq.ParquetFile(path).read() for path in (tmp_path / "out").glob("*.parquet")]
    rows = [row for table in tables for row in table.to_pylist()]
    assert sorted(row["payload"].decode() for row in rows) == sorted(WORDS)
    assert {row["codec"] for row in rows} == {codec}

    segment = tmp_path / f"{0:020}.log"
    written = wrap([KeyedMessage(None, word.encode()) for word in WORDS], Codec[codec.upper()])
    segment.write_bytes(written)
    output = broker.dumped(segment)
    assert all(f"payload: {word}" in output for word in WORDS)
    assert "isvalid: false" not in output
