"""The producers of messages: from an application's `send` to a connection.

Reading order, from the application to the broker:

    settings          the settings, by Kafka's names
    producer          `send`: choose a broker and a partition, send now or queue
    partitioners      which partition a key goes to
    metadata          the program that discovers brokers and partitions in ZooKeeper
    record_batch      messages for one partition, their encoding, and their request
    batch_sender      the asynchronous way: a queue and a sending task for each broker
    interceptors      hooks of the application around that queue
    connection_pool   the connections: retries, reconnects, one sender for each broker
"""
