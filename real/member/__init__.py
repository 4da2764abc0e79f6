"""One process of a live run.

`main` is the entry point. It reads a `job`, builds a `context` (trace, client, channel to the
world), and runs the function of the job's role: `broker_process`, `replica_process` (a broker
of 0.8 that replicates), `consumer_process`, `producer_process` or `writer_process` (what sends
loads to brokers that replicate). In runs without messages a log is a rate: `data_plane_file`
is the file in which the world publishes the logs, `rate_server` serves them, `rate_fetcher`
fetches them. `address_map` resolves the addresses of brokers; `unreported_appends` completes
the trace of a killed broker.
"""
