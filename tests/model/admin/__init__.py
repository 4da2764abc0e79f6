"""Administrative changes, as plans."""
