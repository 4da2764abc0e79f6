"""The data plane of a simulated world: brokers, producers and the fetching of consumers.

There are two kinds. Without storage a log is a rate: `rate_log` computes its end from the
time, and `rate_fetcher` reads it. With storage, `hosts` are the machines of a cluster,
`broker` is the process that serves requests from logs on a simulated disk, and `metrics`
samples the host for the trace; `producer_process` sends messages, `consumer_process` is
handed them, `result_stores` keeps what applications make of them. `cluster` holds all of
this for one cluster.
"""
