"""What `watchkeeper init` writes: a scenario and a test, to be changed."""

from __future__ import annotations

from pathlib import Path

from watchkeeper.console.exit import USAGE, Stop, cannot_write

SCENARIO = """\
# Run it:      watchkeeper run first.yaml
# Look at it:  watchkeeper open
# Many seeds:  watchkeeper sweep first.yaml --seeds 100 --out swept
name: first
about: >-
  Three consumers share a topic. One is killed; the others take over what it had.
clusters:
  main:
    brokers: 2
    layout: "0.8"
    topics:
      clicks: {partitions: 6}
groups:
  billing:
    consumers: 3
    streams: {clicks: 1}
timeline:
  - {at: 0s, produce: clicks, rate: 100/s}
  - {at: 10s, crash: billing/1}
settle: 15s
expect:
  hardened: holds
"""
TEST = '''\
"""The scenario holds, with whatever latencies a seed draws."""

from pathlib import Path

import pytest

from watchkeeper import simulate

SCENARIO = Path(__file__).with_name("first.yaml")


@pytest.mark.parametrize("seed", range(20))
def test_the_group_survives(seed: int) -> None:
    simulate(SCENARIO, seed=seed).check()
'''
FILES = {"first.yaml": SCENARIO, "test_first.py": TEST}


def write_starter(folder: Path) -> list[Path]:
    """Write the files; raise Stop, before any is written, where one is there already."""
    places = {folder / name: text for name, text in FILES.items()}
    there = [str(place) for place in places if place.exists()]
    if there:
        raise Stop(USAGE, f"{', '.join(there)} is there already; choose another folder")
    for place, text in places.items():
        try:
            folder.mkdir(parents=True, exist_ok=True)
            place.write_text(text)
        except OSError as error:
            raise cannot_write(place, error) from None
    return list(places)
