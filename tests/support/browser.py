"""Pages as a browser renders them."""

from __future__ import annotations

import shutil
import subprocess
from html import unescape
from pathlib import Path

import pytest

BROWSER = next(filter(None, map(shutil.which, ("chromium", "google-chrome"))), None)
needs_browser = pytest.mark.skipif(BROWSER is None, reason="there is no browser")


def rendered(page: Path, where: str = "", then: str = "") -> str:
    """Return a page as a browser has rendered it, after it has run the script `then`.

    `where` is the end of the address. The script is appended to the file.
    """
    with page.open("a") as file:
        file.write(f"<script>{then}</script>")
    flags = ["--headless", "--no-sandbox", "--disable-gpu", "--window-size=1400,1000"]
    flags += ["--disable-background-networking", f"--user-data-dir={page.parent}/browser"]
    address = page.as_uri() + where
    command = [BROWSER or "", *flags, "--virtual-time-budget=3000", "--dump-dom", address]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    return unescape(done.stdout)
