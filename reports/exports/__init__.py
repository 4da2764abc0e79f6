"""A trace in the formats of other viewers."""
