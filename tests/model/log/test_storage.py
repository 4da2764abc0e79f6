"""What a storage promises, on the one in memory and on real files."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.log.memory_storage import MemoryStorage
from watchkeeper.model.log.storage import (
    Append,
    CreateFile,
    Delete,
    File,
    Flush,
    ListFolder,
    MakeFolder,
    NoSuchFile,
    Read,
    Rename,
    StorageFailure,
    Touch,
    Truncate,
)
from watchkeeper.real.storage.file_storage import FileStorage
from watchkeeper.real.storage.host_crash import WatchedStorage

Storage = FileStorage | MemoryStorage
KINDS: dict[str, Callable[[Path], Storage]] = {
    "memory": lambda folder: MemoryStorage(),
    "files": lambda folder: FileStorage(folder / "root"),
    "files, few of them open": lambda folder: FileStorage(folder / "root", open_at_most=1),
    "watched": lambda folder: WatchedStorage(folder / "root", folder / "record"),
}


@pytest.fixture(params=KINDS)
def storage(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Storage]:
    """A storage with a folder `a` in which there are the files `one` and `two`."""
    made = KINDS[request.param](tmp_path)
    run(made, MakeFolder("a"), CreateFile("a/one"), CreateFile("a/two"))
    yield made
    if isinstance(made, FileStorage):
        made.close()


def run(storage: Storage, *effects: Any) -> Any:
    """Perform effects, and return the answer to the last."""
    for effect in effects:
        answer = storage.answer(effect)
    return answer


def names(storage: Storage, folder: str) -> list[str]:
    """What a folder lists."""
    return [file.name for file in run(storage, ListFolder(folder))]


def test_what_was_appended_is_read(storage: Storage) -> None:
    """At once, from any offset, and no more bytes than there are."""
    assert run(storage, Append("a/one", b"hello "), Append("a/one", b"world")) == 5
    assert run(storage, Append("a/two", b"other")) == 5

    assert run(storage, Read("a/one", 0, 100)) == b"hello world"
    assert run(storage, Read("a/one", 4, 4)) == b"o wo"
    assert run(storage, Read("a/one", 11, 5)) == b""
    assert run(storage, Read("a/one", 100, 5)) == b""
    assert run(storage, Read("a/two", 0, 0)) == b""
    assert run(storage, Read("a/two", 0, 100)) == b"other"


def test_a_read_does_not_move_where_is_appended(storage: Storage) -> None:
    """Readers and writers share nothing but the bytes."""
    run(storage, Append("a/one", b"abc"), Read("a/one", 0, 1), Append("a/one", b"def"))

    assert run(storage, Read("a/one", 0, 9)) == b"abcdef"


def test_a_file_is_cut_and_appended_to_there(storage: Storage) -> None:
    """Where it ends now, not where it ended."""
    run(storage, Append("a/one", b"abcdef"), Flush("a/one"))
    assert run(storage, Truncate("a/one", 2)) is None
    run(storage, Append("a/one", b"X"))

    assert run(storage, Read("a/one", 0, 9)) == b"abX"


def test_a_folder_lists_what_is_in_it(storage: Storage) -> None:
    """In the order of names, with sizes; a folder as such."""
    run(storage, Append("a/two", b"12345"), MakeFolder("b"), MakeFolder("b"), CreateFile("top"))

    first, two = run(storage, ListFolder("a"))
    assert (first.name, first.size_bytes, first.is_folder) == ("one", 0, False)
    assert (two.name, two.size_bytes) == ("two", 5)
    top: tuple[File, ...] = run(storage, ListFolder(""))
    assert [(file.name, file.is_folder) for file in top] == [
        ("a", True),
        ("b", True),
        ("top", False),
    ]
    assert run(storage, ListFolder("b")) == ()


def test_a_file_that_is_made_anew_is_empty(storage: Storage) -> None:
    """What was open of the old one is not written to any more."""
    run(storage, Append("a/one", b"old"), CreateFile("a/one"), Append("a/one", b"new"))

    assert run(storage, Read("a/one", 0, 9)) == b"new"
    assert names(storage, "a") == ["one", "two"]


def test_what_is_deleted_is_gone(storage: Storage) -> None:
    """A file; and a folder with all that is in it."""
    run(storage, Append("a/one", b"x"), Delete("a/one"))
    assert names(storage, "a") == ["two"]
    assert run(storage, Read("a/one", 0, 9)).kind is NoSuchFile

    run(storage, Append("a/two", b"x"), Delete("a"))
    assert names(storage, "") == []
    assert run(storage, Append("a/two", b"x")).kind is NoSuchFile
    run(storage, MakeFolder("a"), CreateFile("a/two"))
    assert run(storage, Read("a/two", 0, 9)) == b""


def test_a_touched_file_is_new(storage: Storage) -> None:
    """Its time is now, and what is in it stays."""
    run(storage, Append("a/one", b"x"))
    before = run(storage, ListFolder("a"))[0].modified_ms
    if isinstance(storage, MemoryStorage):
        storage.now_ms += 1000
    assert run(storage, Touch("a/one")) is None

    after = run(storage, ListFolder("a"))[0]
    assert (after.size_bytes, after.modified_ms >= before) == (1, True)


MISSING = [
    Append("a/none", b"x"),
    Read("a/none", 0, 1),
    Flush("a/none"),
    Truncate("a/none", 0),
    Delete("a/none"),
    Touch("a/none"),
    ListFolder("none"),
    CreateFile("none/one"),
    Read("a/one/below", 0, 1),
]


@pytest.mark.parametrize("effect", MISSING, ids=repr)
def test_what_is_not_there_is_named(storage: Storage, effect: Any) -> None:
    """The answer is a value, which is raised where it is awaited."""
    answer = run(storage, effect)

    path = effect.folder if isinstance(effect, ListFolder) else effect.path
    assert isinstance(answer, StorageFailure)
    assert (answer.kind, answer.path) == (NoSuchFile, path)


def test_a_file_takes_the_place_of_another(storage: Storage) -> None:
    """In one step; a file that is open follows its name."""
    run(storage, Append("a/one", b"1"), Append("a/two", b"2"), MakeFolder("b"))
    assert run(storage, Rename("a/one", "a/two")) is None
    assert names(storage, "a") == ["two"]
    run(storage, Append("a/two", b"+"), Rename("a/two", "b/two"), Append("b/two", b"-"))

    assert run(storage, Read("b/two", 0, 9)) == b"1+-"
    assert names(storage, "a") == []
    assert run(storage, Rename("a/none", "a/two")).kind is NoSuchFile
