"""The consumers of messages: from the fetch of a partition to the stream of an application.

Reading order, from the broker to the application:

    simple          one request to one broker
    chunks          the messages of one fetch, and their delivery
    positions       how far a member has fetched and delivered a partition; the listener
    fetcher_tasks   the task that fetches from one broker, round after round
    fetcher         the partitions of one consumer, and their tasks: the hard file
    streams         the queue that one task of an application reads
    connector       the high-level consumer: streams and a group member together
    result_store    results stored in one step with their position: exactly once
    trace_events    the events of all this in a trace
"""
