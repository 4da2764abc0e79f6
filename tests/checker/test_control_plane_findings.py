"""The page of what searches of the control plane have found says what searches find."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

import pytest

from tests import HOME

PAGE = (HOME / "docs" / "findings-control-plane.md").read_text()


@pytest.fixture(scope="module")
def findings() -> ModuleType:
    """The program that makes the page."""
    return import_module("docs.control_plane_findings")


def shown(variant: str, brokers: int | str, faults: str) -> list[str]:
    """The row of the page."""
    _, _, table = PAGE.partition(f"### `{variant}`, {brokers} brokers")
    [row] = [
        line for line in table.split("###")[0].splitlines() if line.startswith(f"| {faults} |")
    ]
    return [cell.strip() for cell in row.strip("|").split("|")]


@pytest.mark.parametrize(
    ("variant", "brokers", "faults"),
    [
        ("kafka_08", 2, "a broker is killed"),
        ("kafka_08", 2, "a reply is lost"),
        ("kafka_08", 3, "no fault"),
        ("hardened", 2, "a broker is killed"),
        ("hardened", 2, "a connection breaks"),
        pytest.param("kafka_08", 2, "a session expires", marks=pytest.mark.slow),
        pytest.param("hardened", 2, "a session expires", marks=pytest.mark.slow),
        pytest.param(
            *("kafka_08", 2, "a broker is killed, and a session expires"), marks=pytest.mark.slow
        ),
    ],
)
def test_a_row_says_what_searches_find(
    findings: ModuleType, variant: str, brokers: int, faults: str
) -> None:
    assert findings.row_of(variant, faults, brokers).cells() == shown(variant, brokers, faults)


@pytest.mark.parametrize(
    ("variant", "brokers", "faults"),
    [
        ("kafka_08", 2, "a broker is killed, and a session expires"),
        ("kafka_08", 2, "a session expires, and a reply is lost"),
        ("kafka_08", 3, "a broker is killed, and a reply is lost"),
        ("hardened", 2, "a session expires, and a request is late"),
        ("hardened", 3, "a broker is killed, and a request is late"),
        pytest.param("kafka_08", 2, "two sessions expire", marks=pytest.mark.slow),
        pytest.param(
            *("kafka_08", 3, "a broker is killed, and a session expires"), marks=pytest.mark.slow
        ),
    ],
)
def test_a_row_of_running_brokers_says_what_a_search_finds(
    findings: ModuleType, variant: str, brokers: int, faults: str
) -> None:
    row = findings.running.row_of(variant, faults, brokers)
    assert row.cells() == shown(variant, f"{brokers} running", faults)


def test_the_page_has_every_row(findings: ModuleType) -> None:
    """A fault that is added is searched, too."""
    for variant in findings.VARIANTS:
        for brokers, names in ((2, findings.FAULTS), (3, findings.WITH_THREE)):
            assert all(shown(variant, brokers, name) for name in names)
        for brokers in findings.running.SIZES:
            assert all(
                shown(variant, f"{brokers} running", name) for name in findings.running.FAULTS
            )
