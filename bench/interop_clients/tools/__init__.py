"""Tools of each side on the controller of the other one: they meet in znodes only.

Reading order: `topic_state` (what the znodes of a topic say), `own_cluster` (brokers of this
project that elect a controller), then the rows: `kafka_tools` on that controller, and `own_tools`
on Kafka's.
"""
