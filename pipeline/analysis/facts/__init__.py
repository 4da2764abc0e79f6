"""The facts of runs, as tables.

`events` reads traces into Parquet; `intervals` joins events to intervals; `plan_facts` and
`mirror_routes` hold what plans state; `message_events`, `stored_ranges` and `interval_cuts`
follow ranges of messages. `tables` stores each step's result.
"""
