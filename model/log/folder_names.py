"""The folder names of logs, and the valid names of topics.

The folder of a log is `<topic>-<partition>`. A topic may contain dashes; the partition follows
the last one.
"""

from __future__ import annotations

import re

from watchkeeper.model.log.format.errors import InvalidTopic

MAX_TOPIC_CHARACTERS = 255
MAX_FOLDER_NAME_BYTES = 255
"""The limit of common file systems for one name."""
FORBIDDEN_CHARACTERS = re.compile(
    "[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]"
)
"""Path separators, control characters, and code units that Java does not treat as characters."""
FOLDER = re.compile(r"(?P<topic>.+)-(?P<partition>0|[1-9][0-9]*)", re.DOTALL)


def check_topic(topic: str) -> None:
    """Raise `InvalidTopic` if a topic cannot have this name."""
    forbidden = FORBIDDEN_CHARACTERS.search(topic)
    if not topic or topic in (".", ".."):
        raise InvalidTopic(repr(topic), "expected a name that can be that of a folder")
    if len(topic) > MAX_TOPIC_CHARACTERS:
        raise InvalidTopic(
            f"{topic[:20]}...",
            f"{len(topic)} characters, expected at most {MAX_TOPIC_CHARACTERS}",
        )
    if forbidden:
        raise InvalidTopic(
            repr(topic), f"the character U+{ord(forbidden[0]):04X} is not allowed in it"
        )


def folder_of(topic: str, partition: int) -> str:
    """Return the folder name of a log; raise `InvalidTopic` if the name is impossible."""
    check_topic(topic)
    folder = f"{topic}-{partition}"
    size_bytes = len(folder.encode())
    if size_bytes > MAX_FOLDER_NAME_BYTES:
        raise InvalidTopic(
            f"{topic[:20]}...",
            f"with the partition it takes {size_bytes} bytes, and the name of a folder may have "
            f"{MAX_FOLDER_NAME_BYTES}",
        )
    return folder


def partition_of(folder: str) -> tuple[str, int] | None:
    """Return the topic and partition of a folder name; None if it is no folder of a log."""
    found = FOLDER.fullmatch(folder)
    if found is None:
        return None
    try:
        check_topic(found["topic"])
    except InvalidTopic:
        return None
    return found["topic"], int(found["partition"])
