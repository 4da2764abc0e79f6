"""The clients of brokers, as protocol code: producers, consumers, and programs made of both.

`errors` holds the errors that clients raise. Read the folders in this order:

    producer/       choose a partition, batch, compress and send: the client that writes
    consumer/       fetch, queue and deliver to streams: the client that reads
    compositions/   applications, mirrors and load generators; the clients of Kafka 0.7.2

Clients are coroutines that yield effects (`model.actor`): the simulation and the live runs
drive the same code.
"""
