"""The settings of a topic that differ from those of its brokers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from watchkeeper.model.admin.plan import (
    BadRequest,
    Plan,
    Write,
    WriteKind,
    create,
    create_parents,
    once,
    set_data,
)
from watchkeeper.model.admin.topic_settings import check_settings
from watchkeeper.model.admin.validation import check_not_being_deleted, check_readable, the_topic
from watchkeeper.model.audit.control_plane import ControlPlane
from watchkeeper.model.registry import paths
from watchkeeper.model.registry.payloads import ConfigChange, TopicConfig


def overrides_of(control: ControlPlane, name: str) -> dict[str, str]:
    """The settings of a topic."""
    the_topic(control, name)
    check_readable(control, paths.topic_config(name))
    return dict(control.configs.get(name, TopicConfig()).overrides)


def configure(
    control: ControlPlane, name: str, values: Mapping[str, str], removed: Sequence[str]
) -> Plan:
    """Set and remove settings of a topic, and notify its brokers, in one transaction.

    Kafka's tool writes them blindly, and notifies in a second request: of two changes at once one
    is lost, and after a crash in between no broker learns of the change.
    """
    check_settings(values)
    before = overrides_of(control, name)
    check_not_being_deleted(control, name)
    for setting in removed:
        if setting in values:
            raise BadRequest(f"{setting} is both set and removed; choose one")
        if setting not in before:
            there = ", ".join(before) or "none"
            raise BadRequest(f"{name} does not override {setting}; it overrides: {there}")
    after = {key: value for key, value in (before | dict(values)).items() if key not in removed}
    action = f"change the settings of {name}"
    if after == before:
        return Plan(action, left_out=(f"{name} has these settings already",))
    path = paths.topic_config(name)
    data = TopicConfig(tuple(sorted(after.items()))).encode()
    what = f"the settings of {name}"
    writes: list[Write]
    if path in control.snapshot.nodes:
        writes = [set_data(control, path, data, what)]
    else:
        conflict = f"{what} were created meanwhile; look at them, and repeat the command"
        writes = [*create(control, path, data, conflict)]
    writes += create_parents(control, paths.CONFIG_CHANGE)
    writes += [Write(WriteKind.CREATE_NUMBERED, paths.CONFIG_CHANGE, ConfigChange(name).encode())]
    details = tuple(
        f"{key}: {before.get(key, 'none')} -> {after.get(key, 'none')}"
        for key in sorted(before.keys() | after.keys())
        if before.get(key) != after.get(key)
    )
    return Plan(action, once(iter(writes)), details=details)
