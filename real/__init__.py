"""Live runs: the programs of the model against a real ZooKeeper, in real processes.

Two uses share this package. A live run (`world`) executes a plan: it starts an embedded
ZooKeeper or uses an external one, starts a process for each member, and injects faults. An
application (`embed`) runs the same programs in its own process.

Read in this order: `client` (one ZooKeeper client on kazoo), `process` (what runs a program and
its tasks), `embed` (the API for applications); then `zookeeper` and `supervise` (servers as
child processes), `proxy` (network faults), `member` (the process of a member), `world` (a
live run), `faults`, `trace`. Beside them: `net`, `storage`, `broker` and
`replica_broker` (real brokers),
`results` (stores of results), `replay` (schedules of the checker), `calibration`. At the top:
`access` (addresses and credentials), `ports` (free ports), `errors` (EnvironmentProblem).
"""
