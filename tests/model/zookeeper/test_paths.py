"""What servers remember of the paths and the data that clients send."""

from __future__ import annotations

import sys

from watchkeeper.model.actor.operations import Create, Multi
from watchkeeper.model.trace.text import described_answer, described_operation
from watchkeeper.model.zookeeper.java_hash_order import string_hash
from watchkeeper.model.zookeeper.paths import is_valid, parent_of


def test_long_paths_are_not_remembered() -> None:
    """A client that sends a megabyte again and again must not fill the memory."""
    path = "/a" * 100_000
    before = sys.getrefcount(path)

    assert is_valid(path)
    assert parent_of(path) == path[:-2]
    assert string_hash(path)

    assert sys.getrefcount(path) == before


def test_long_paths_have_the_answers_of_short_ones() -> None:
    """Whether a path is remembered makes no difference."""
    assert not is_valid("/a" * 1_000 + "/")
    assert not is_valid("/a" * 1_000 + "\0")
    assert parent_of("a" * 1_000) is None


def test_large_data_is_not_remembered() -> None:
    """The description of an operation or an answer keeps at most its begin."""
    data = b"x" * 100_000
    before = sys.getrefcount(data)

    described_operation(Create("/a", data))
    described_operation(Multi((Create("/a", data),)))
    described_answer(data)

    assert sys.getrefcount(data) == before
