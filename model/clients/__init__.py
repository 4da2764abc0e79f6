"""The clients of brokers: producers, simple consumers, and the streams of a group's members."""
