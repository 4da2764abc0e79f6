"""Loads logs into a table, in parallel, and remembers in the table itself how far it has come."""
