"""The picture of connections between consumers and brokers at the end of a run (`png`)."""
