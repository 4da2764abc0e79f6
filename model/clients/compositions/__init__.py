"""Programs made of producers and consumers, as scenarios and live runs start them.

application      a consumer's application: process, and commit before, after or with it
load_generator   a producer's application: send at a rate
load_producer    the producer of a load and its messages, by the protocol of the brokers
mirror           a consumer whose application is a producer to another cluster
kafka_07         the clients of Kafka 0.7.2, and the choice of clients for a variant
"""
