"""Why a recipe violates a property, and what a user can do about it."""

from __future__ import annotations

CAUSES: dict[tuple[str, str], str] = {}
"""(recipe, property) -> the cause, and the advice."""
