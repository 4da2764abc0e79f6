"""The process that `process_ensemble` starts, with its order as the one argument."""

import sys

from watchkeeper.real.python_zookeeper.quick_import import quick_import

with quick_import():
    from watchkeeper.real.python_zookeeper.child import main

if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
