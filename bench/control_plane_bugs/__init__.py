"""Bugs of Kafka's control plane and of its replicas, and the runs that catch them."""
