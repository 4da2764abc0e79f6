"""Clients of Kafka 0.8, and Kafka's own tools, on a broker of this project.

Reading order: `outcome` (what a row says), `broker` (the broker and its ZooKeeper), `kafka_jars`
(Kafka 0.8.2.2 from Maven Central), then the clients: `kafka_python`, `kcat`, `jvm`, and `own`
(this project's commands on what the others wrote). `kafka_brokers` is the other way round: this
project reads from Kafka's brokers. `groups`, `tools` and `mixed_cluster` have rows on Kafka's
ZooKeeper: members, tools and brokers of both kinds.
"""
