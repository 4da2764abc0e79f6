"""Replication: what a replica stores, and how the replicas of a broker lead and follow.

variants     the two versions, 0.8.2.2 as shipped and `hardened`, as one table; read this first
settings     the configuration of replication in one broker
replica_log  the log of a replica: records with the epoch of the leader that appended them
settings     how brokers are configured
truncation   the rules by which versions of Kafka cut a follower's log
messages     records as messages of 0.8, in files and between brokers
requests     the requests between brokers, and those of producers, as values
wire         their encoding
registry     what a broker reads in ZooKeeper: states of partitions, settings of topics
replica      a replica, what a leader knows of a follower, and the disk
replicas     all replicas in one broker, and the requests of a controller
leader       appending, serving followers, and the ISR
kafka_fetch  fetches as in 0.8, with which brokers of Kafka follow and are followed
fetcher      what a follower does
service      how each request is answered, and what is done from time to time
"""
