"""Kafka's settings as its own files write them; the tables of settings are with what they set."""
