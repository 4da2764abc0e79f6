"""The page of a counterexample.

`marks` computes what is drawn (intervals of fetching, claims and notifications, counted in
steps); `html` writes the page and the data for its two scripts.
"""
