"""The logs of brokers of Kafka 0.7 and 0.8, read from their files by Spark.

    from pipeline.kafkalog.source import register

    register(spark)
    spark.read.format("kafkalog").load("/var/kafka-logs")

From the file to the row: `folders` lists logs, `splits` cuts them into what tasks read,
`stretches` reads bytes, `chain` finds entries in them, `rows` makes messages of entries,
and `reading` makes record batches of messages. Nothing of these knows Spark; `source` and
`streaming` do.
"""
