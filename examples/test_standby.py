"""Test the protocol in `standby.py` under drawn faults, with Hypothesis and the pytest plugin."""

from check_standby import SCENARIO, search
from hypothesis import HealthCheck, given, settings
from standby import STANDBY

from watchkeeper import strategies

KINDS = ("crash", "expire", "pause", "partition", "leave")
CLAIMS = {"single ownership", "full cover", "truthful registry", "progress"}
LOAD = SCENARIO["timeline"][:1]


@settings(
    deadline=None,
    max_examples=25,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(timeline=strategies.faults(consumers=3, brokers=1, most=2, kinds=KINDS))
def test_one_member_works(timeline, run_scenario):
    """Hypothesis shrinks a failing timeline; the fixture adds the report of its runs."""
    scenario = {**SCENARIO, "timeline": [*LOAD, *timeline], "settle": "20s"}
    result = run_scenario(scenario, consumer=STANDBY)
    assert CLAIMS.isdisjoint(result.violated), result


def test_the_standby_takes_over(run_scenario):
    """The trace shows which member fetched, and when."""
    result = run_scenario(SCENARIO, consumer=STANDBY)
    fetching = result.trace.of_kind("fetching")
    begins = [event for event in fetching if event.detail["does"] == "begins"]
    assert len({event.node for event in begins}) > 1
    assert begins[1].t_us > 10_000_000


def test_every_interleaving():
    """The search includes what no run happens to show."""
    result = search()
    assert result.holds, result
