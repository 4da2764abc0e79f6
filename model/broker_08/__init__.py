"""A broker of Kafka 0.8 that does not replicate: what its requests do.

Reading order:

    cluster           which brokers live and who leads what, as this broker sees it
    registry          the same, read from ZooKeeper; topics that it creates, states that it claims
    metadata          the answer to a metadata request, from that view
    group_offsets     the offsets of groups in ZooKeeper
    group_coordinator the offsets of groups in a log, and who coordinates a group
    replicated_coordinator
                      the same in a broker that replicates
    replica_cleaner   compaction of replicas
    replicated_clients
                      produce, metadata and offsets in a broker that replicates
    waiting_fetches   fetches that wait for messages
    request_handler   the requests, over the logs of a broker

`watchkeeper.real.broker.server_08` gives it connections and files. Brokers that replicate, with a
controller, are in `watchkeeper.model.replication` and `watchkeeper.model.controller`; what their
followers fetch has an encoding of this project, unless they fetch as in 0.8.
"""
