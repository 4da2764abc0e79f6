"""Browsing a search: any state that it can reach, and the steps that are enabled there."""
