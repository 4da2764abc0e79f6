"""Logs of Kafka 0.8: messages with logical offsets, which the broker assigns.

Reading order:

    checks       message sets that are checked before the append, and numbered during it
    index        positions in a segment by offset: every few kilobytes one entry
    segments     the files of a log, and what each knows
    log          append, find, open; what can be read, and from when on
    compaction   of the messages of each key, the latest one is kept
    swap         segments are replaced by one, whatever interrupts it
    cleaner      which log is compacted next, and how far each is
    manager      all logs of a broker
    settings     their settings, by the names of 0.8

What does not depend on the format is in `watchkeeper.model.log`: rolls, flushes, retention, the
marker of a clean end. The format of messages is in `watchkeeper.model.log.format.message_08`.
"""
