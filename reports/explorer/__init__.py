"""The page on which a search is browsed, and the picture of a small graph of states."""
