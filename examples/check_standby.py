"""Search every interleaving of the protocol in `standby.py`, and then simulate one run of it."""

from standby import GROUP, STANDBY

from watchkeeper import explore, simulate

FAULTS = {"crash": 1, "expire": 1, "disconnect": 1}
SCENARIO = {
    "name": "standby",
    "about": "The working member crashes, and the session of its successor expires.",
    "clusters": {"main": {"layout": "0.8", "topics": {"jobs": {"partitions": 1}}}},
    "groups": {GROUP: {"consumers": 3, "streams": {"jobs": 1}}},
    "timeline": [
        {"at": "0s", "produce": "jobs", "rate": "100/s", "size": "100B"},
        {"at": "10s", "crash": f"{GROUP}/0"},
        {"at": "20s", "expire": f"{GROUP}/2"},
    ],
}


def working(state):
    """Return the members at work whose session is alive, or that know that it is dead."""
    return [
        member
        for member in state.running.values()
        if member.state == "working" and (member.has_session or member.link == "expired")
    ]


def search():
    """Two members, and at most one fault of each kind, at any moment."""
    return explore(
        {"ann": STANDBY, "ben": STANDBY},
        always={"one worker": lambda state: len(working(state)) <= 1},
        at_rest={"a worker": lambda state: working(state) or not state.running},
        sometimes={"a member works": working},
        faults=FAULTS,
    )


if __name__ == "__main__":
    print(search())
    result = simulate(SCENARIO, consumer=STANDBY, seed=1)
    for finding in result.findings:
        if finding.claim.name in ("single ownership", "full cover", "progress"):
            print(f"{finding.claim.name} {finding.verdict.value}: {finding.evidence}")
