"""The page of an analysis (`html`), drawn by the scripts beside it."""
