"""The coordination registry: znode paths and payloads, in the layouts of Kafka 0.7 and 0.8.

paths         every path, and the payloads of brokers, numbers and names; read this first
payloads      the JSON payloads of the 0.8 layout
subscription  the topics that a consumer wants, and its registration
topic_filter  white lists and black lists as regular expressions
"""
