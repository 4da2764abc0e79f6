"""The formats of Kafka 0.7 and 0.8.0: messages, message sets, requests and responses.

Reading order:

    message_07       one message: payload, CRC, codec
    message_set_07   messages one after the other: the loop that all of 0.7 rests on
    codecs           gzip, snappy and lz4
    bulk_checksum    one CRC pass over many messages: the hard file
    message_08       messages with keys and logical offsets
    contents         what a file holds: bytes, or ranges of a simulated series of messages
    series           the entries of such ranges, where `message_set_07` has those of bytes
    entries          the same operations on either kind of contents
    fields, frames   the fields of requests, and the frames that carry them
    requests         the five requests of 0.7 and their responses
    errors           the errors, with their codes on the wire
"""
