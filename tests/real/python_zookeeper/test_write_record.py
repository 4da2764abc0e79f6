"""The record of what an ensemble has committed."""

from __future__ import annotations

from tests.support.zookeeper.ensemble_in_memory import ManualClock, started
from watchkeeper.model.ensemble.ensemble import Ensemble
from watchkeeper.model.wire.opcodes import Opcode
from watchkeeper.model.wire.requests import Reconfig
from watchkeeper.real.python_zookeeper.write_record import WriteRecord


def test_a_write_that_is_refused_before_it_is_an_operation_has_a_row() -> None:
    """It takes a zxid, so the record of a run would have a gap without it."""
    record = WriteRecord()
    client = started(Ensemble(ManualClock(), recorder=record))

    reply = client.request(Opcode.RECONFIG, Reconfig("", "", "", -1))

    assert reply.error == -123
    assert record.rows[-1][3:] == ["refused", {"op": "undecodable"}]
