"""The facts of a run, derived from its trace: no pictures here.

`spans` joins events to spans of time. `intervals` shows who fetched what, with splits and gaps;
`sessions` the states of processes and servers; `operations` requests with their responses and
watch firings; `timeline` faults and changes; `connections` the end of the run. `throughput`,
`lags`, `latencies`, `metrics` and `message_ranges` follow messages. `selection` chooses what fits
a picture, `names` sorts and lists names.
"""
