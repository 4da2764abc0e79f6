"""The log: messages, message sets, segments, and what a broker does with them."""
