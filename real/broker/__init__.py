"""A broker of Kafka 0.7 that stores messages in files.

`server` is the entry: the event loop, its rules and its end. `connection` serves the requests
of one connection, `disk_worker` performs blocking disk operations, `settings` has Kafka's keys.
What a request means is in `watchkeeper.model.broker.request_handler`.
"""
