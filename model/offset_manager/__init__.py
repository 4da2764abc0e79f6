"""The offset manager of Kafka 0.8.2: offsets of groups, kept as messages of a topic.

Each group has a *coordinator*: the broker that leads one partition of `__consumer_offsets`, which
the name of the group selects. A commit is a message of that partition; its key names group, topic
and partition, so that a compacted log keeps the latest one. The coordinator answers fetches from
a cache, which it loads from the log when it begins to lead.

Reading order:

    settings      what is configured
    records       the bytes of a message: key and value
    cache         the offsets of one partition of the topic, in memory
    load          the cache from the log
    manager       the caches of a broker: what it coordinates, and what it answers

A broker of `watchkeeper.model.broker_08` runs it over its logs. Kafka 0.8.2.2: OffsetManager.
"""
