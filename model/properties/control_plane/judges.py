"""The judges of a run's control planes that follow its events, and the names of what is judged.

The properties at rest have a judge of their own, `control_plane_judge`, which looks at each
rest before an event changes anything.
"""

from __future__ import annotations

from collections.abc import Sequence

from watchkeeper.model.plan.plan import ClusterPlan, Plan
from watchkeeper.model.properties.control_plane.brokers import BROKERS, BrokersJudge
from watchkeeper.model.properties.control_plane.controllers import CONTROL_PLANE
from watchkeeper.model.properties.control_plane.costs import COSTS, CostsJudge
from watchkeeper.model.properties.control_plane.halts import HALTS, HaltsJudge
from watchkeeper.model.properties.control_plane.isrs import ISRS, IsrsJudge
from watchkeeper.model.properties.control_plane.leaders import NO_DEAD_LEADERS, PREFERRED
from watchkeeper.model.properties.control_plane.marks import HIGH_WATERMARKS, MarksJudge
from watchkeeper.model.properties.control_plane.replication import REPLICATION, ReplicationJudge
from watchkeeper.model.properties.control_plane.requests import REQUESTS, RequestsJudge
from watchkeeper.model.properties.control_plane.spread import SPREADS, SpreadJudge
from watchkeeper.model.properties.control_plane.updates import UPDATES, UpdatesJudge
from watchkeeper.model.properties.history import History

OF_CONTROLLERS = (*CONTROL_PLANE, NO_DEAD_LEADERS, *UPDATES, *COSTS, *SPREADS)
"""The properties of clusters whose brokers elect a controller."""
OF_REPLICAS = (
    PREFERRED,
    *REQUESTS,
    *REPLICATION,
    *BROKERS,
    *HIGH_WATERMARKS,
    *HALTS,
    *ISRS,
)
"""The properties of clusters whose brokers replicate."""
OF_CONTROL_PLANES = (*OF_CONTROLLERS, *OF_REPLICAS)

Judge = (
    UpdatesJudge
    | CostsJudge
    | SpreadJudge
    | RequestsJudge
    | ReplicationJudge
    | BrokersJudge
    | MarksJudge
    | HaltsJudge
    | IsrsJudge
)


def event_judges(plan: Plan, history: History) -> tuple[Judge, ...]:
    """The judges that follow the events of a run, as far as its clusters concern them."""
    judges: tuple[Judge, ...] = ()
    if plan.elects_controllers:
        judges += (
            UpdatesJudge(plan, history),
            CostsJudge(plan, history),
            SpreadJudge(plan, history),
        )
    if plan.replicates:
        judges += (
            RequestsJudge(plan, history),
            ReplicationJudge(plan, history),
            BrokersJudge(plan, history),
            MarksJudge(plan, history),
            HaltsJudge(plan, history),
            IsrsJudge(plan, history),
        )
    return judges


def control_plane_claims(clusters: Sequence[ClusterPlan]) -> list[str]:
    """The names of the properties that are judged in a scenario with these clusters."""
    claims = OF_CONTROLLERS if any(one.controller is not None for one in clusters) else ()
    if any(one.replication is not None for one in clusters):
        claims += OF_REPLICAS
    return [claim.name for claim in claims]
