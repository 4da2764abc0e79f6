"""`python -m watchkeeper`, and the command `watchkeeper`.

The signal handler is installed before the command line is imported: Ctrl-C during that
import ends the command with one line. Importing `watchkeeper` as a library installs nothing.
"""

import gc

from watchkeeper.console.process_end import end_process
from watchkeeper.console.signals import INTERRUPTS

MOST_NEW_OBJECTS = 100_000
"""More than so many new objects are searched for cycles. Python's default is 700."""


def main() -> None:
    """Run the command line and leave with its exit code."""
    INTERRUPTS.listen()
    # An import makes many objects that stay and no garbage; commands import when they run.
    gc.set_threshold(MOST_NEW_OBJECTS)
    from watchkeeper.cli.main import main as run

    try:
        run()
    except SystemExit as ended:
        if isinstance(ended.code, int):
            end_process(ended.code)
        raise


if __name__ == "__main__":
    main()
