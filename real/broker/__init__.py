"""The ports of live brokers.

`server` is the entry to a broker of Kafka 0.7 that stores messages in files: the event loop,
its rules and its end. `connection` serves the requests of one connection, `disk_worker`
performs blocking disk operations, `settings` has Kafka's keys. What a request means is in
`watchkeeper.model.broker.request_handler`.

`replica_server` is the port of a broker of 0.8 that replicates; what its requests mean is in
`watchkeeper.model.replication.service`.
"""
