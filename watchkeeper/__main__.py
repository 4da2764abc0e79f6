"""`python -m watchkeeper` is the command line."""

from watchkeeper.cli import main

main()
