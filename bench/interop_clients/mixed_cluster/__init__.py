"""A cluster of a broker of Kafka 0.8.2.2 and two of this project, in one ZooKeeper.

Reading order: `own_brokers` (processes of this project's brokers), `replica_logs` (whether all
replicas are equal), `load` (messages under way while a broker is killed), `rows`.
"""
