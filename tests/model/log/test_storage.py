"""What a storage promises, on the one in memory and on real files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from model.log.storage import (
    Append,
    CreateFile,
    Delete,
    File,
    Flush,
    Listed,
    MakeFolder,
    NoSuchFile,
    Read,
    Rename,
    StorageFailure,
    Touch,
    Truncate,
)
from real.hostcrash import WatchedStorage
from real.storage import FileStorage
from tests.log_memory import MemoryStorage

Storage = FileStorage | MemoryStorage
KINDS: dict[str, Callable[[Path], Storage]] = {
    "memory": lambda folder: MemoryStorage(),
    "files": lambda folder: FileStorage(folder / "root"),
    "files, few of them open": lambda folder: FileStorage(folder / "root", open_at_most=1),
    "watched": lambda folder: WatchedStorage(folder / "root", folder / "diary"),
}


@pytest.fixture(params=KINDS)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    """A storage with a folder `a` in which there are the files `one` and `two`."""
    made = KINDS[request.param](tmp_path)
    asked(made, MakeFolder("a"), CreateFile("a/one"), CreateFile("a/two"))
    yield made
    if isinstance(made, FileStorage):
        made.close()


def asked(storage: Storage, *asks: Any) -> Any:
    """What is answered to the last of these."""
    for ask in asks:
        answer = storage.answer(ask)
    return answer


def names(storage: Storage, folder: str) -> list[str]:
    """What a folder lists."""
    return [file.name for file in asked(storage, Listed(folder))]


def test_what_was_appended_is_read(storage: Storage) -> None:
    """At once, from any place, and no more than there is."""
    assert asked(storage, Append("a/one", b"hello "), Append("a/one", b"world")) == 5
    assert asked(storage, Append("a/two", b"other")) == 5

    assert asked(storage, Read("a/one", 0, 100)) == b"hello world"
    assert asked(storage, Read("a/one", 4, 4)) == b"o wo"
    assert asked(storage, Read("a/one", 11, 5)) == b""
    assert asked(storage, Read("a/one", 100, 5)) == b""
    assert asked(storage, Read("a/two", 0, 0)) == b""
    assert asked(storage, Read("a/two", 0, 100)) == b"other"


def test_a_read_does_not_move_where_is_appended(storage: Storage) -> None:
    """Readers and writers share nothing but the bytes."""
    asked(storage, Append("a/one", b"abc"), Read("a/one", 0, 1), Append("a/one", b"def"))

    assert asked(storage, Read("a/one", 0, 9)) == b"abcdef"


def test_a_file_is_cut_and_appended_to_there(storage: Storage) -> None:
    """Where it ends now, not where it ended."""
    asked(storage, Append("a/one", b"abcdef"), Flush("a/one"))
    assert asked(storage, Truncate("a/one", 2)) is None
    asked(storage, Append("a/one", b"X"))

    assert asked(storage, Read("a/one", 0, 9)) == b"abX"


def test_a_folder_lists_what_is_in_it(storage: Storage) -> None:
    """In the order of names, with sizes; a folder as such."""
    asked(storage, Append("a/two", b"12345"), MakeFolder("b"), MakeFolder("b"), CreateFile("top"))

    one, two = asked(storage, Listed("a"))
    assert (one.name, one.size_bytes, one.is_folder) == ("one", 0, False)
    assert (two.name, two.size_bytes) == ("two", 5)
    top: tuple[File, ...] = asked(storage, Listed(""))
    assert [(file.name, file.is_folder) for file in top] == [
        ("a", True),
        ("b", True),
        ("top", False),
    ]
    assert asked(storage, Listed("b")) == ()


def test_a_file_that_is_made_anew_is_empty(storage: Storage) -> None:
    """What was open of the old one is not written to any more."""
    asked(storage, Append("a/one", b"old"), CreateFile("a/one"), Append("a/one", b"new"))

    assert asked(storage, Read("a/one", 0, 9)) == b"new"
    assert names(storage, "a") == ["one", "two"]


def test_what_is_deleted_is_gone(storage: Storage) -> None:
    """A file; and a folder with all that is in it."""
    asked(storage, Append("a/one", b"x"), Delete("a/one"))
    assert names(storage, "a") == ["two"]
    assert asked(storage, Read("a/one", 0, 9)).kind is NoSuchFile

    asked(storage, Append("a/two", b"x"), Delete("a"))
    assert names(storage, "") == []
    assert asked(storage, Append("a/two", b"x")).kind is NoSuchFile
    asked(storage, MakeFolder("a"), CreateFile("a/two"))
    assert asked(storage, Read("a/two", 0, 9)) == b""


def test_a_touched_file_is_new(storage: Storage) -> None:
    """Its time is now, and what is in it stays."""
    asked(storage, Append("a/one", b"x"))
    before = asked(storage, Listed("a"))[0].modified_ms
    if isinstance(storage, MemoryStorage):
        storage.now_ms += 1000
    assert asked(storage, Touch("a/one")) is None

    after = asked(storage, Listed("a"))[0]
    assert (after.size_bytes, after.modified_ms >= before) == (1, True)


MISSING = [
    Append("a/none", b"x"),
    Read("a/none", 0, 1),
    Flush("a/none"),
    Truncate("a/none", 0),
    Delete("a/none"),
    Touch("a/none"),
    Listed("none"),
    CreateFile("none/one"),
    Read("a/one/below", 0, 1),
]


@pytest.mark.parametrize("ask", MISSING, ids=repr)
def test_what_is_not_there_is_named(storage: Storage, ask: Any) -> None:
    """The answer is a value, which is raised where it is awaited."""
    answer = asked(storage, ask)

    path = ask.folder if isinstance(ask, Listed) else ask.path
    assert isinstance(answer, StorageFailure)
    assert (answer.kind, answer.path) == (NoSuchFile, path)


def test_a_file_takes_the_place_of_another(storage: Storage) -> None:
    """In one step; a file that is open follows its name."""
    if isinstance(storage, WatchedStorage):
        with pytest.raises(TypeError, match="other names"):
            asked(storage, Rename("a/one", "a/two"))
        return
    asked(storage, Append("a/one", b"1"), Append("a/two", b"2"), MakeFolder("b"))
    assert asked(storage, Rename("a/one", "a/two")) is None
    assert names(storage, "a") == ["two"]
    asked(storage, Append("a/two", b"+"), Rename("a/two", "b/two"), Append("b/two", b"-"))

    assert asked(storage, Read("b/two", 0, 9)) == b"1+-"
    assert names(storage, "a") == []
    assert asked(storage, Rename("a/none", "a/two")).kind is NoSuchFile
