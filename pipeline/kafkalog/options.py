"""The options of `spark.read.format("kafkalog")`, validated."""

from __future__ import annotations

import json
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar, get_args
from urllib.parse import unquote, urlparse

from msgspec import Struct

from watchkeeper.pipeline.errors import PipelineProblem
from watchkeeper.pipeline.kafkalog.brokers.addresses import (
    RETRY_MS,
    Brokers,
    Protocol,
    addresses_in,
)
from watchkeeper.pipeline.kafkalog.brokers.listing import logs_at
from watchkeeper.pipeline.kafkalog.logs import Log
from watchkeeper.pipeline.kafkalog.scan.folders import Gaps, Replicas, logs_in
from watchkeeper.pipeline.kafkalog.scan.split_reader import OnCorrupt
from watchkeeper.pipeline.kafkalog.scan.splits import SPLIT_BYTES

Word = TypeVar("Word", bound=str)
Start = Literal["earliest", "latest"]


class Options(Struct, frozen=True):
    """Which logs are read, and how."""

    folder: str
    brokers: Brokers | None = None
    """Where the logs are, if they are not in a folder."""
    topics: tuple[str, ...] = ()
    """Only these; all if empty."""
    broker: int | None = None
    replicas: Replicas = "first"
    gaps: Gaps = "fail"
    on_corrupt: OnCorrupt = "fail"
    split_bytes: int = SPLIT_BYTES
    pushes_filters: bool = False
    starting_offsets: Start | dict[str, int] = "earliest"
    max_bytes: int | None = None
    """Of a stream: the greatest size of one batch, if given."""
    max_messages: int | None = None

    @property
    def where(self) -> str:
        """The place of the logs."""
        return str(self.brokers or self.folder)

    def logs(self) -> list[Log]:
        """The logs that are there now."""
        if self.brokers is not None:
            return [*logs_at(self.brokers, self.topics, self.broker)]
        found = logs_in(self.folder, broker=self.broker, replicas=self.replicas, gaps=self.gaps)
        chosen: list[Log] = [log for log in found if not self.topics or log.topic in self.topics]
        if not chosen:
            there = sorted({log.topic for log in found})
            raise PipelineProblem(
                f"{self.folder} has no log of topic {', '.join(self.topics)}; it has those of "
                f"{', '.join(there[:10])}{' and others' if len(there) > 10 else ''}"
            )
        return chosen


class Option(NamedTuple):
    """An option as a user writes it."""

    name: str
    default: str
    says: str


OPTIONS = (
    Option("path", "", "the folder of the logs: of one broker, of several, or one log"),
    Option(
        "brokers",
        "",
        "in place of a folder: live brokers, HOST:PORT,...; of 0.7 ID:HOST:PORT,...",
    ),
    Option("protocol", "auto", "what the brokers speak: 0.7, 0.8, or auto to find out"),
    Option("retryMs", str(RETRY_MS), "how long a request to brokers that fails is retried"),
    Option("topics", "all", "topics, separated by commas; brokers of 0.7 need them"),
    Option("broker", "", "the id of the broker that wrote the logs"),
    Option("replicas", "first", "0.8: read the first replica of a partition, or all"),
    Option("gaps", "fail", "if a segment is missing: fail or allow"),
    Option("corrupt", "fail", "if a message is damaged: fail, skip or quarantine"),
    Option("splitBytes", str(SPLIT_BYTES), "several tasks read a segment above this size"),
    Option(
        "pushdown",
        "off",
        "on: read only logs that match the filters; call load for each query then",
    ),
    Option("startingOffsets", "earliest", "the start of a new stream: earliest, latest or JSON"),
    Option("maxBytesPerTrigger", "", "the largest size of a batch of a stream"),
    Option("maxMessagesPerTrigger", "", "the largest number of messages in a batch"),
)
OF_FOLDERS = ("path", "replicas")
"""Options that brokers do not go with."""
OF_BROKERS = ("protocol", "retryMs")
"""Options that need brokers."""
_NAMES = {option.name.lower(): option.name for option in OPTIONS}


def options_of(given: Mapping[str, str]) -> Options:
    """The options that a user gave; PipelineProblem if one is invalid."""
    lowered = {key.lower(): value for key, value in given.items()}
    for key in lowered:
        if key not in _NAMES:
            near = get_close_matches(key, _NAMES, 1)
            hint = f"; did you mean {_NAMES[near[0]]}" if near else ""
            known = ", ".join(_NAMES.values())
            raise PipelineProblem(f"kafkalog has no option {key!r}{hint}? It has {known}")
    max_bytes = _number(lowered, "maxBytesPerTrigger", 1)
    max_messages = _number(lowered, "maxMessagesPerTrigger", 1)
    if max_bytes is not None and max_messages is not None:
        raise PipelineProblem(
            "a batch is limited by maxBytesPerTrigger or by maxMessagesPerTrigger; give one"
        )
    topics = tuple(name.strip() for name in lowered.get("topics", "").split(",") if name.strip())
    brokers = _brokers(lowered)
    return Options(
        folder="" if brokers is not None else _folder(lowered.get("path", "")),
        brokers=brokers,
        topics=topics,
        broker=_number(lowered, "broker", 0),
        replicas=_word(lowered, "replicas", get_args(Replicas), "first"),
        gaps=_word(lowered, "gaps", get_args(Gaps), "fail"),
        on_corrupt=_word(lowered, "corrupt", get_args(OnCorrupt), "fail"),
        split_bytes=_number(lowered, "splitBytes", 1) or SPLIT_BYTES,
        pushes_filters=_word(lowered, "pushdown", ("off", "on"), "off") == "on",
        starting_offsets=_starting(lowered.get("startingoffsets", "earliest")),
        max_bytes=max_bytes,
        max_messages=max_messages,
    )


def _brokers(lowered: Mapping[str, str]) -> Brokers | None:
    """The brokers; None for logs in a folder."""
    if not lowered.get("brokers", ""):
        for name in OF_BROKERS:
            if name.lower() in lowered:
                raise PipelineProblem(f"{name} is given without brokers; give brokers as well")
        return None
    for name in OF_FOLDERS:
        if lowered.get(name.lower(), ""):
            raise PipelineProblem(f"{name} and brokers are given; expected one of them")
    retry_ms = _number(lowered, "retryMs", 0)
    return Brokers(
        addresses_in(lowered["brokers"]),
        _word(lowered, "protocol", get_args(Protocol), "auto"),
        RETRY_MS if retry_ms is None else retry_ms,
    )


def _folder(path: str) -> str:
    """The folder, absolute, since workers have a working directory of their own."""
    if not path:
        raise PipelineProblem(
            "kafkalog needs the folder of the logs: load(FOLDER); or the option brokers"
        )
    parts = urlparse(path)
    if parts.scheme == "file":
        path = unquote(parts.path)
    elif parts.scheme and "://" in path:
        raise PipelineProblem(
            f"{path} is no folder of this machine; kafkalog reads files as brokers write them, "
            "from a path that every worker sees"
        )
    return str(Path(path).absolute())


def _number(lowered: Mapping[str, str], name: str, least: int) -> int | None:
    text = lowered.get(name.lower())
    if text is None or text == "":
        return None
    if not (text.isascii() and text.isdecimal()) or not least <= int(text) < 2**31:
        raise PipelineProblem(f"{name} is {text!r}; expected a whole number from {least} on")
    return int(text)


def _word(lowered: Mapping[str, str], name: str, known: tuple[Word, ...], default: Word) -> Word:
    text = lowered.get(name.lower(), default)
    for word in known:
        if word == text.lower():
            return word
    raise PipelineProblem(f"{name} is {text!r}; expected {' or '.join(known)}")


def _starting(text: str) -> Start | dict[str, int]:
    for word in get_args(Start):
        if text == word:
            return word  # type: ignore[no-any-return]
    wrong = PipelineProblem(
        f"startingOffsets is {text!r}; expected earliest, latest or JSON of the form "
        '{"BROKER/TOPIC-PARTITION": 42}; at brokers of 0.8, {"TOPIC-PARTITION": 42}'
    )
    try:
        offsets = json.loads(text)
    except ValueError:
        raise wrong from None
    if not isinstance(offsets, dict) or not all(
        type(offset) is int for offset in offsets.values()
    ):
        raise wrong
    return offsets
