"""Every znode path and every payload of the coordination registry, in both layouts.

Nowhere else is a path spelled. The two layouts agree on most paths; they differ in how
a partition is named (0.7: `broker-partition`, 0.8: a number for the whole topic), in
where the partitions of a topic are found, and in the payloads.

  0.7  /brokers/ids/[id]                     host:port, or creator:host:port as shipped
       /brokers/topics/[topic]/[broker]      how many partitions this broker has
       /consumers/[group]/ids/[consumer]     { "topic": n }, *n*regex or !n!regex
  0.8  /brokers/ids/[id]                     JSON
       /brokers/topics/[topic]               JSON: partition -> replicas
       /brokers/topics/[topic]/partitions/[n]/state   JSON: leader, epochs, isr
       /controller, /controller_epoch         JSON: a broker id; a number
       /admin/reassign_partitions, /admin/preferred_replica_election   JSON: a request
       /admin/delete_topics/[topic]           an empty znode: a request
       /config/topics/[topic]                 JSON: settings
       /config/changes/config_change_[n]      a topic in quotes: a notification
       /consumers/[group]/ids/[consumer]     JSON: subscription, pattern, timestamp
  both /consumers/[group]/owners/[topic]/[partition]  who has claimed it
       /consumers/[group]/offsets/[topic]/[partition] an offset, in decimal

What is written follows the layout (and, for brokers, the variant). What is read may be
of either, since clusters are upgraded one process at a time.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from watchkeeper.model.actor.effects import Partition

Layout = Literal["0.7", "0.8"]
BrokerForm = Literal["host:port", "creator:host:port", "json", "json with endpoints"]

BROKER_IDS = "/brokers/ids"
TOPICS = "/brokers/topics"
GROUPS = "/consumers"
CONTROLLER = "/controller"
CONTROLLER_EPOCH = "/controller_epoch"
ADMIN = "/admin"
CONFIG = "/config"
CLUSTER_ID = "/cluster/id"
DELETE_TOPICS = "/admin/delete_topics"
REASSIGN_PARTITIONS = "/admin/reassign_partitions"
PREFERRED_REPLICA_ELECTION = "/admin/preferred_replica_election"
TOPIC_CONFIGS = "/config/topics"
CONFIG_CHANGES = "/config/changes"
CONFIG_CHANGE = "/config/changes/config_change_"
"""The path of a notification without its number, which ZooKeeper appends."""
ISR_CHANGES = "/isr_change_notification"
ISR_CHANGE = "/isr_change_notification/isr_change_"
"""The path of a notification that ISRs have changed, without its number."""


class BadPayload(ValueError):
    """The data of a znode is not a valid payload for its path."""

    def __init__(self, path: str, data: bytes | None, expected: str) -> None:
        shown = "nothing" if data is None else repr(data[:200].decode("utf-8", "replace"))
        super().__init__(f"{path} holds {shown}; expected {expected}")
        self.path = path
        self.data = data


class BadName(BadPayload):
    """A child is named by no broker's id."""

    def __init__(self, path: str, name: str) -> None:
        ValueError.__init__(
            self,
            f"{path} has the child {name!r}; expected names that are broker ids, as in the 0.7 "
            "layout",
        )
        self.path = path
        self.data = None


def broker_id_of(path: str, name: str) -> int:
    """The broker id by which a child of a path is named; BadName if it is none."""
    if not name.isdecimal():
        raise BadName(path, name)
    return int(name)


# Paths that every rebalance composes again are remembered: equal paths are then one object, whose
# hash is known, and a look-up in a tree does not compare their characters.


@lru_cache(maxsize=65_536)
def broker(broker_id: int) -> str:
    """The path of a broker's registration."""
    return f"{BROKER_IDS}/{broker_id}"


def topic(name: str) -> str:
    """The path of a topic."""
    return f"{TOPICS}/{name}"


@lru_cache(maxsize=65_536)
def topic_broker(name: str, broker_id: int) -> str:
    """0.7: the path under which a broker says how many partitions of a topic it has."""
    return f"{TOPICS}/{name}/{broker_id}"


def partitions(name: str) -> str:
    """0.8: the path above the partitions of a topic."""
    return f"{TOPICS}/{name}/partitions"


def partition_state(partition: Partition) -> str:
    """0.8: the path of a partition's state."""
    return f"{TOPICS}/{partition.topic}/partitions/{partition.name}/state"


def topic_config(name: str) -> str:
    """0.8: the path of a topic's settings."""
    return f"{TOPIC_CONFIGS}/{name}"


def config_change(number: int) -> str:
    """0.8: the path of a notification that settings have changed."""
    return f"{CONFIG_CHANGE}{number:010d}"


def number_of_change(name: str) -> int | None:
    """0.8: the number of a notification; None for a znode with another name."""
    found = re.fullmatch(r"config_change_(\d{1,10})", name)
    return None if found is None else int(found[1])


def topic_deletion(name: str) -> str:
    """0.8: the path of the request to delete a topic."""
    return f"{DELETE_TOPICS}/{name}"


def members(group: str) -> str:
    """The path above the registrations of a group's consumers."""
    return f"/consumers/{group}/ids"


@lru_cache(maxsize=65_536)
def member(group: str, consumer: str) -> str:
    """The path of a consumer's registration."""
    return f"/consumers/{group}/ids/{consumer}"


def owners(group: str) -> str:
    """The path above a group's owner registry."""
    return f"/consumers/{group}/owners"


def topic_owners(group: str, name: str) -> str:
    """The path above the owners of a topic's partitions."""
    return f"/consumers/{group}/owners/{name}"


@lru_cache(maxsize=65_536)
def owner(group: str, partition: Partition) -> str:
    """The path of the claim on a partition."""
    return f"/consumers/{group}/owners/{partition.topic}/{partition.name}"


@lru_cache(maxsize=65_536)
def offset(group: str, partition: Partition) -> str:
    """The path of a group's committed offset in a partition."""
    return f"/consumers/{group}/offsets/{partition.topic}/{partition.name}"


def offsets(group: str) -> str:
    """The path above a group's committed offsets."""
    return f"/consumers/{group}/offsets"


def group_home(group: str) -> str:
    """The path above everything that a group keeps."""
    return f"{GROUPS}/{group}"


def parent_of(path: str) -> str:
    """The path above this one."""
    return path.rpartition("/")[0]


_OWNER = re.compile(r"/consumers/([^/]+)/owners/([^/]+)/([^/]+)")
_OFFSET = re.compile(r"/consumers/([^/]+)/offsets/([^/]+)/([^/]+)")
_MEMBER = re.compile(r"/consumers/([^/]+)/ids/([^/]+)")


@lru_cache(maxsize=65_536)
def parse_owner(path: str) -> tuple[str, Partition] | None:
    """Return group and partition of the path of a claim; None for any other path."""
    found = _OWNER.fullmatch(path)
    return None if found is None else (found[1], Partition(found[2], found[3]))


@lru_cache(maxsize=65_536)
def parse_offset(path: str) -> tuple[str, Partition] | None:
    """The group and the partition of an offset's path; None for any other path."""
    found = _OFFSET.fullmatch(path)
    return None if found is None else (found[1], Partition(found[2], found[3]))


_NUMBER = re.compile("-?[0-9]+")


def offset_in(data: str) -> int | None:
    """Return the committed offset; None if the data is no number."""
    return int(data) if _NUMBER.fullmatch(data) else None


@lru_cache(maxsize=65_536)
def parse_member(path: str) -> tuple[str, str] | None:
    """The group and the consumer of a registration's path; None for any other path."""
    found = _MEMBER.fullmatch(path)
    return None if found is None else (found[1], found[2])


def is_registration(path: str) -> bool:
    """Whether a path is that of the registration of a broker or of a consumer."""
    return parse_member(path) is not None or path.startswith(f"{BROKER_IDS}/")


_GROUP = re.compile(r"/consumers/([^/]+)(?:/.*)?")
_ABOVE_OFFSETS = re.compile(r"/consumers/[^/]+/offsets(?:/[^/]+)?")


def group_of(path: str) -> str | None:
    """The group to which a path belongs; None for a path of no group."""
    found = _GROUP.fullmatch(path)
    return None if found is None else found[1]


def is_above_offsets(path: str) -> bool:
    """Whether a path has nothing below it but a group's offsets."""
    return _ABOVE_OFFSETS.fullmatch(path) is not None


_CONTROL = re.compile(r"/(?:controller|controller_epoch|(?:admin|config)(?:/.*)?)")
_STATE = re.compile(r"/brokers/topics/([^/]+)/partitions/([^/]+)/state")


def is_of_controller(path: str) -> bool:
    """Whether consumers never read a path: it is for the controller and its requests."""
    return _CONTROL.fullmatch(path) is not None


def parse_topic(path: str) -> str | None:
    """Return the topic in the path of a topic; None for any other path."""
    name = path.removeprefix(f"{TOPICS}/")
    return None if name == path or "/" in name else name


def parse_state(path: str) -> Partition | None:
    """The partition of the path of a state; None for any other path."""
    found = _STATE.fullmatch(path)
    return None if found is None else Partition(found[1], found[2])


# --- partitions ------------------------------------------------------------------------


def partition_07(name: str, broker_id: int, index: int) -> Partition:
    """0.7: partition `index` that this broker has of the topic."""
    return Partition(name, f"{broker_id}-{index}")


def broker_of(partition: Partition) -> int:
    """0.7: the broker that has a partition; ValueError if the name says none."""
    broker_id, dash, index = partition.name.rpartition("-")
    if not dash or not broker_id.isdigit() or not index.isdigit():
        raise ValueError(
            f"partition {partition} has no broker in its name; expected broker-partition, "
            "as the 0.7 layout names them"
        )
    return int(broker_id)


# --- numbers and names -----------------------------------------------------------------


def encode_number(value: int) -> bytes:
    """A count of partitions, or an offset: decimal."""
    return str(value).encode()


_DECIMAL = re.compile(r"-?\d{1,19}")


def decode_number(path: str, data: bytes | None) -> int:
    """Read a decimal number; BadPayload if it is none."""
    text = as_text(path, data, "a decimal number")
    if not _DECIMAL.fullmatch(text):
        raise BadPayload(path, data, "a decimal number")
    return int(text)


def as_text(path: str, data: bytes | None, expected: str) -> str:
    """Read UTF-8; BadPayload if it is none."""
    try:
        return (data or b"").decode()
    except UnicodeDecodeError:
        raise BadPayload(path, data, expected) from None


def decode_text(path: str, data: bytes | None) -> str:
    """Read a name, as owner znodes hold it; BadPayload if there is none."""
    text = as_text(path, data, "text in UTF-8")
    if not text:
        raise BadPayload(path, data, "the id of a consumer or of one of its threads")
    return text


def decode_json(path: str, data: bytes | None, expected: str) -> dict[str, Any]:
    """Read a JSON object; BadPayload if it is none."""
    try:
        value = json.loads(data or b"")
    except (ValueError, RecursionError):
        raise BadPayload(path, data, expected) from None
    if not isinstance(value, dict):
        raise BadPayload(path, data, expected)
    return value


def encode_json(value: dict[str, Any]) -> bytes:
    """Write a JSON object with its keys in order, so that equal values are equal bytes."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()


# --- brokers ---------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class BrokerInfo:
    """The address of a broker, and the other fields of its registration."""

    host: str
    port: int
    creator: str = ""
    """0.7.2: `host-millis` of the process that registered."""
    timestamp: str = ""
    jmx_port: int = -1
    endpoints: tuple[str, ...] = ()

    @property
    def address(self) -> str:
        """Host and port as one word."""
        return f"{self.host}:{self.port}"


def encode_broker(info: BrokerInfo, form: BrokerForm) -> bytes:
    """Write a broker's registration in one of its historical forms."""
    if form == "host:port":
        return info.address.encode()
    if form == "creator:host:port":
        return f"{info.creator}:{info.address}".encode()
    value: dict[str, Any] = {
        "version": 1,
        "host": info.host,
        "port": info.port,
        "jmx_port": info.jmx_port,
        "timestamp": info.timestamp,
    }
    if form == "json with endpoints":
        value["version"] = 2
        value["endpoints"] = list(info.endpoints) or [f"PLAINTEXT://{info.address}"]
    return encode_json(value)


_BROKER_TEXT = re.compile(r"(?:(?P<creator>[^:]+):)?(?P<host>\[[^\]]+\]|[^:]+):(?P<port>\d{1,5})")


@lru_cache(maxsize=4096)
def decode_broker(path: str, data: bytes | None) -> BrokerInfo:
    """Read a broker's registration in any of its forms; BadPayload if it is in none."""
    expected = "host:port, creator:host:port or JSON with host and port"
    text = as_text(path, data, expected)
    if text.lstrip().startswith("{"):
        return _decode_broker_json(path, data)
    found = _BROKER_TEXT.fullmatch(text)
    if found is None:
        raise BadPayload(path, data, expected)
    return BrokerInfo(found["host"], int(found["port"]), creator=found["creator"] or "")


def _decode_broker_json(path: str, data: bytes | None) -> BrokerInfo:
    expected = "JSON with host (text) and port (number)"
    value = decode_json(path, data, expected)
    host, port = value.get("host"), value.get("port")
    jmx_port, endpoints = value.get("jmx_port", -1), value.get("endpoints", [])
    if not isinstance(host, str) or type(port) is not int:
        raise BadPayload(path, data, expected)
    if type(jmx_port) is not int:
        raise BadPayload(path, data, f"{expected}, and a jmx_port that is a number")
    if not isinstance(endpoints, list):
        raise BadPayload(path, data, f"{expected}, and endpoints in a list")
    return BrokerInfo(
        host,
        port,
        timestamp=str(value.get("timestamp", "")),
        jmx_port=jmx_port,
        endpoints=tuple(map(str, endpoints)),
    )
