"""The protocol of Kafka 0.8 between clients and brokers: requests and responses as values.

    request     int32 size of what follows, int16 key, int16 version, int32 correlation id,
                string client id, fields
    response    int32 size of what follows, int32 correlation id, fields

Functions between bytes and frozen values; nothing here does input or output. Reading order:

    by_topic        the fields of partitions, grouped by topic, as most requests have them
    produce         Produce, key 0
    fetch           Fetch, key 1; the head of a response whose messages come from a file
    metadata        Metadata, key 3: who leads which partition, and where brokers listen
    group_offsets   ConsumerMetadata, OffsetCommit and OffsetFetch, keys 10, 8 and 9
    table           requests by key and version: decode, encode
    client_request  a request with the name of its client, as clients here send it

The offsets request, key 2, is older than this package: `watchkeeper.model.log.format.requests_08`
has it, with the header of requests and the error codes. Messages are in
`watchkeeper.model.log.format.message_08`.
"""
