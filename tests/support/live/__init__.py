"""Support for live tests: a broker's process, and a TLS front for a ZooKeeper server."""
