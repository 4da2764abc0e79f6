"""A live run: the process that starts, directs and stops everything else.

Read `run` (from the plan to the trace), then `world` (its one thread and its calendar), then
`cluster`, which has a service (`embedded` or `external` with an `observer`), a proxy and a
`data_plane`. `jobs` makes the jobs of member processes, `process` is such a process as seen
from here; `producers`, `hosts` and `leaders` keep the state of loads, brokers' folders and
partition leaders. `capabilities` and `permissions` say what a plan may do live.
"""
