"""The logs of brokers of Kafka 0.7 and 0.8, read from their files by Spark.

    from watchkeeper.pipeline.kafkalog.source import register

    register(spark)
    spark.read.format("kafkalog").load("/var/kafka-logs")

`source` is the data source for batches, `stream` for streams; `options` and `filters` hold what a
query states, `read_limits` how far a batch of a stream reads, `missing_offsets` the errors where
a log lacks an offset. `scan/` reads the files and knows nothing of Spark.
"""
