"""The programs around a broker.

registration     how a broker registers its id and, in the 0.7 layout, its topics
administrator    writes topics, replicas and leaders in the 0.8 layout
upkeep           flushes, retention and locks, for brokers of both protocols
request_handler  what a 0.7 broker does with a request, over its logs
"""
