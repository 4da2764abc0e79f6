"""A broker of 0.8 that replicates, as a process of its own: `watchkeeper broker --replicate`.

Reading order:

    settings   its settings, with Kafka's names
    broker     its replicas, its port, and its member of the cluster
    process    runs it until a signal ends it

What it does is in `watchkeeper.model.replication` and `watchkeeper.model.controller`. In a live
run `watchkeeper.real.member.replica_process` does the same, under the orders of a world.
"""
