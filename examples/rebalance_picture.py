"""Run a scenario from Python, print its rebalances, and draw them: python rebalance_picture.py"""

import sys
from pathlib import Path

from watchkeeper import simulate
from watchkeeper.reports import write_ownership_html, write_ownership_png

SCENARIO = Path(__file__).parent / "deployment.yaml"


def rebalances(result):
    """The time in seconds, the member and its partitions, for each completed rebalance."""
    for event in result.trace.of_kind("rebalance completed"):
        yield event.t_us / 1e6, event.node, event.detail["owns"]


def main(folder):
    """Write the pictures into a folder."""
    result = simulate(str(SCENARIO), seed=3)
    for time_s, member, number in rebalances(result):
        print(f"{time_s:7.3f} s  {member}  owns {number}")
    folder.mkdir(parents=True, exist_ok=True)
    for write in (write_ownership_png, write_ownership_html):
        print(folder / write(result.trace, folder))


if __name__ == "__main__":
    main(Path(sys.argv[1] if len(sys.argv) > 1 else "pictures"))
