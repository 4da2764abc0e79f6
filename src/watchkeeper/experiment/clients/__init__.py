"""Experiments on producers and consumers, and on what passes between them and brokers."""
