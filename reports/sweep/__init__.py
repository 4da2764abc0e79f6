"""The page of a sweep (`html`), drawn by the scripts beside it."""
