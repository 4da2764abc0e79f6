"""Events that a scenario looks for in runs of some variants."""

from __future__ import annotations

import pytest

from watchkeeper import simulate
from watchkeeper.scenarios import ScenarioError, from_text

TEXT = """\
name: looked-for
about: a consumer that is never killed
clusters: {{main: {{brokers: 1, layout: "0.8", topics: {{clicks: {{partitions: 2}}}}}}}}
groups: {{billing: {{consumers: 1, streams: {{clicks: 1}}}}}}
timeline: [{{at: 1s, produce: clicks, rate: 10/s}}]
{clause}: [{{event: session expired, variants: [{variant}]}}]
"""


@pytest.mark.parametrize(("variant", "exit_code"), [("hardened", 0), ("kafka_08", 2)])
def test_an_event_is_looked_for_in_runs_of_named_variants(variant: str, exit_code: int) -> None:
    """It never happens: where it is looked for, the run does not show what it is about."""
    scenario = from_text("looked-for.yaml", TEXT.format(clause="sometimes", variant="kafka_08"))
    assert simulate(scenario, variant=variant).exit_code == exit_code


@pytest.mark.parametrize("clause", ["sometimes", "never"])
def test_a_variant_that_there_is_not(clause: str) -> None:
    """The problem names the place and the nearest variant."""
    scenario = from_text("looked-for.yaml", TEXT.format(clause=clause, variant="kafka_8"))
    where = rf"looked-for.yaml:6: {clause}\[0\].variants\[0\]: 'kafka_8' is not a variant"
    with pytest.raises(ScenarioError, match=where):
        scenario.plan()
