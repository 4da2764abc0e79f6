"""Reads the files of a log: from the file to rows of messages, without Spark.

`folders` lists logs, `splits` cuts them into the parts that tasks read, `valid_runs` reads bytes,
`entry_scan` finds entries in them (`formats` has the layouts, `checksums` the CRCs), `rows` makes
messages of entries, and `split_reader` makes record batches of messages. `segment_scan` finds
entry boundaries without reading messages, `index` uses the brokers' index.
"""
