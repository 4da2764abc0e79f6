"""The settings that a topic may override, by the names and types of Kafka 0.8.2."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum

from watchkeeper.model.admin.plan import BadRequest

INT_LIMIT = 2**31 - 1
LONG_LIMIT = 2**63 - 1


class SettingType(Enum):
    """The values that a setting takes, in words."""

    INT = "a whole number"
    RATIO = "a number from 0 to 1"
    BOOLEAN = "true or false"
    POLICY = "delete or compact"


@dataclass(frozen=True, slots=True)
class TopicSetting:
    """A setting: its name and the values that brokers accept."""

    name: str
    takes: SettingType = SettingType.INT
    least: int = 0
    most: int = LONG_LIMIT

    def accepts(self, value: str) -> bool:
        """Whether brokers accept a value."""
        if self.takes is SettingType.BOOLEAN:
            return value in ("true", "false")
        if self.takes is SettingType.POLICY:
            return value in ("delete", "compact")
        if self.takes is SettingType.RATIO:
            return re.fullmatch(r"0(\.\d{1,15})?|1(\.0{1,15})?", value) is not None
        return (
            re.fullmatch(r"-?\d{1,19}", value) is not None
            and self.least <= int(value) <= self.most
        )

    @property
    def expected(self) -> str:
        """The values that brokers accept, in words."""
        if self.takes is not SettingType.INT:
            return str(self.takes.value)
        return f"a whole number from {self.least} to {self.most}"


SETTINGS = {
    one.name: one
    for one in (
        TopicSetting("cleanup.policy", SettingType.POLICY),
        TopicSetting("delete.retention.ms"),
        TopicSetting("file.delete.delay.ms"),
        TopicSetting("flush.messages"),
        TopicSetting("flush.ms"),
        TopicSetting("index.interval.bytes", most=INT_LIMIT),
        TopicSetting("max.message.bytes", most=INT_LIMIT),
        TopicSetting("min.cleanable.dirty.ratio", SettingType.RATIO),
        TopicSetting("min.insync.replicas", least=1, most=INT_LIMIT),
        TopicSetting("retention.bytes", least=-1),
        TopicSetting("retention.ms"),
        TopicSetting("segment.bytes", most=INT_LIMIT),
        TopicSetting("segment.index.bytes", most=INT_LIMIT),
        TopicSetting("segment.jitter.ms"),
        TopicSetting("segment.ms"),
        TopicSetting("unclean.leader.election.enable", SettingType.BOOLEAN),
    )
}
"""Name -> setting."""


def check_setting_name(name: str) -> TopicSetting:
    """Return a setting; BadRequest if there is none of that name, with the nearest one."""
    if name not in SETTINGS:
        near = get_close_matches(name, SETTINGS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"expected one of {', '.join(SETTINGS)}"
        raise BadRequest(f"a topic has no setting {name}; {hint}")
    return SETTINGS[name]


def check_settings(overrides: Mapping[str, str]) -> None:
    """Refuse a setting that does not exist, or a value that brokers do not accept."""
    for name, value in overrides.items():
        setting = check_setting_name(name)
        if not setting.accepts(value):
            raise BadRequest(f"{name} is {value!r}; expected {setting.expected}")
