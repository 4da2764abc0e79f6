"""The clients of Kafka 0.8: a producer with acknowledgements, and a simple consumer.

They speak the protocol of `model.wire_08`, and need no ZooKeeper: any broker knows the leaders.
Reading order:

    settings     the settings of a producer, by the names of 0.8.2
    errors       what clients raise besides the errors of `model.clients`
    metadata     which broker leads which partition, as the brokers say
    dispatcher   sends a batch: choose partitions, find leaders, send, retry
    producer     `send`: at once, or through a queue
    simple       fetches, offsets and metadata, from one broker
    connector    the consumer of a group

They run in simulation and live. `watchkeeper.model.clients.compositions` has what accounts for
their messages.
"""
