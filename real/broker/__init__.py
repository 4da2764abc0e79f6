"""The ports of live brokers.

`log_server` is what every broker has that stores messages in files: the event loop, its rules and
its end. `server` is the broker of 0.7 and `server_08` that of 0.8; `connection` and
`connection_08` serve the requests of one connection, and `framed_connection` is what they share;
`sender` sends responses, `disk_worker`
performs blocking disk operations, `settings` and `settings_08` have Kafka's keys. What a request
means is in `watchkeeper.model.broker.request_handler` and
`watchkeeper.model.broker_08.request_handler`.

`replica_server` is the port of a broker of 0.8 that replicates; what its requests mean is in
`watchkeeper.model.replication.service`.
"""
