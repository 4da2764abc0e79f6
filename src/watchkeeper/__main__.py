"""`python -m watchkeeper`, and the command `watchkeeper`.

The signal handler is installed before the command line is imported: Ctrl-C during that
import ends the command with one line. Importing `watchkeeper` as a library installs nothing.
"""

import gc

from watchkeeper.console.signals import INTERRUPTS


def main() -> None:
    """Run the command line and leave with its exit code."""
    INTERRUPTS.listen()
    gc.disable()  # an import leaves no garbage
    from watchkeeper.cli.main import main as run

    gc.enable()

    run()


if __name__ == "__main__":
    main()
