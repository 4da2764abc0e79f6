"""The folders of a broker's logs, and which topics can have one.

A log is in the folder `<topic>-<partition>`. A topic may have dashes in its name; what
follows the last one is the partition.
"""

from __future__ import annotations

import re

from model.log.errors import InvalidTopic

LONGEST_TOPIC = 255
LONGEST_NAME_BYTES = 255
"""What file systems allow for one name."""
NOT_IN_TOPICS = re.compile("[/\x00-\x1f\x7f-\x9f\ud800-\uf8ff\ufff0-\uffff\U00010000-\U0010ffff]")
"""What separates folders or controls terminals, and, as Java counts, what is no character."""
FOLDER = re.compile(r"(?P<topic>.+)-(?P<partition>0|[1-9][0-9]*)", re.DOTALL)


def check_topic(topic: str) -> None:
    """Raise `InvalidTopic` for a name that no topic can have."""
    strange = NOT_IN_TOPICS.search(topic)
    if not topic or topic in (".", ".."):
        raise InvalidTopic(repr(topic), "expected a name that can be that of a folder")
    if len(topic) > LONGEST_TOPIC:
        raise InvalidTopic(
            f"{topic[:20]}...", f"{len(topic)} characters, expected at most {LONGEST_TOPIC}"
        )
    if strange:
        raise InvalidTopic(
            repr(topic), f"the character U+{ord(strange[0]):04X} is not allowed in it"
        )


def folder_of(topic: str, partition: int) -> str:
    """The folder of a log; `InvalidTopic` if there can be none."""
    check_topic(topic)
    folder = f"{topic}-{partition}"
    size_bytes = len(folder.encode())
    if size_bytes > LONGEST_NAME_BYTES:
        raise InvalidTopic(
            f"{topic[:20]}...",
            f"with the partition it takes {size_bytes} bytes, and the name of a folder may have "
            f"{LONGEST_NAME_BYTES}",
        )
    return folder


def partition_of(folder: str) -> tuple[str, int] | None:
    """The topic and partition of a folder by its name; None if it is that of no log."""
    found = FOLDER.fullmatch(folder)
    if found is None:
        return None
    try:
        check_topic(found["topic"])
    except InvalidTopic:
        return None
    return found["topic"], int(found["partition"])
