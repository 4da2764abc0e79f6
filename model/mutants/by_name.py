"""Variants and members by name: the shipped ones, and those of the mutants.

The catalogue of the mutants is imported for a name that no shipped variant has. Making its
variants takes as long as a small run, and few runs name one.
"""

from __future__ import annotations

from watchkeeper.model.group.consumer import SHIPPED, GroupMember
from watchkeeper.model.group.variants import VARIANTS, Variant


def variant_named(name: str) -> Variant | None:
    """Return a variant, sound or mutated; None if no variant has this name."""
    if name in VARIANTS:
        return VARIANTS[name]
    from watchkeeper.model.mutants.catalogue import MUTANTS

    return MUTANTS[name].variant if name in MUTANTS else None


def member_of(variant: Variant) -> GroupMember:
    """Return what runs the turns of a variant: the shipped member, or that of a mutant."""
    if variant.name in VARIANTS:
        return SHIPPED
    from watchkeeper.model.mutants.catalogue import MUTANTS
    from watchkeeper.model.mutants.members import MEMBERS

    mutant = MUTANTS.get(variant.name)
    if mutant is None or mutant.mutation is None:
        return SHIPPED
    return MEMBERS[mutant.mutation]
