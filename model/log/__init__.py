"""The log of a partition, and all logs of a broker, as protocol code over a storage.

Reading order:

    format/       the bytes: messages, message sets, requests, and their simulated stand-ins
    storage       the effects on files that a log yields, and their durability
    segments      the files of a log: their names and offsets
    base_log      flush, roll and stop, for this log and that of 0.8 (`watchkeeper.model.log_08`)
    log           append and read: the hard file
    recovery      the intact part of the last segment after a crash
    retention     which segments are deleted
    timestamps    offsets before a time
    validation    the check of message sets before they are appended
    log_manager   all logs of a broker: start, close, periodic work
    folder_names  folder names of logs, valid names of topics
    settings      the settings, by Kafka's names

Offsets are positions in bytes, as in Kafka 0.7.
"""
