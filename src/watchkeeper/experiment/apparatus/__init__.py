"""What experiments are made with: a host, its programs, and how an outcome is written down."""
