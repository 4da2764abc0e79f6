"""The page on kazoo's recipes: programs that use them, the table, and what stands about it.

Its modules:

  programs  a program for each recipe, and what has to hold of it
  cells     a program, a kind of fault, and many seeds
  causes    why a property is violated, and what a user can do
  page      the command that runs all cells and writes `docs/kazoo-recipes.md`
"""
