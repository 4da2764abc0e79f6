"""The engine of a simulated run: no ZooKeeper and no processes yet.

`kernel` is SimPy's environment with an integer clock, cheap calendar entries and the trace.
`random_streams` gives each part of a run a random stream of its own, so that one more draw
in one part changes nothing in another. `latency_profile` has the distributions that the
latencies are drawn from.
"""
