"""The tests of watchkeeper: a folder for each package, and `support` for what they share."""

from pathlib import Path

HOME = Path(__file__).resolve().parent.parent
"""The project's folder."""

SOURCE = HOME / "src"
"""What child processes have to find before anything that is installed."""
