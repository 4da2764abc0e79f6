"""The first page of a run, and the command that opens it."""

from __future__ import annotations

import json
import re
import webbrowser
from html.parser import HTMLParser
from pathlib import Path

import pytest

from watchkeeper import simulate
from watchkeeper.analyze.runs import gathered
from watchkeeper.cli.main import run_command
from watchkeeper.model.properties.verdicts import seconds
from watchkeeper.run.run import first_page


class Page(HTMLParser):
    """The links, images and text of a page; an element that is not closed is an error."""

    VOID = frozenset({"meta", "img"})

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.images: list[str] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(text)
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note where an element leads."""
        given = dict(attrs)
        if tag == "a":
            self.links.append(str(given["href"]))
        if tag == "img":
            self.images.append(str(given["src"]))
            assert given["alt"]
        if tag not in self.VOID:
            self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        """Close the element that was opened last."""
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Note what is shown."""
        if self._open[-1:] != ["style"]:
            self.text += data


def ran(tmp_path: Path, *words: str, code: int = 0) -> Path:
    """Run a scenario, and return its folder."""
    assert run_command(["run", *words, "--out", str(tmp_path)]) == code
    return (tmp_path / "latest").resolve()


@pytest.mark.parametrize(
    ("name", "variant", "said"),
    [
        ("consumer-crash", "hardened", ["holds, as the scenario expects", "13 properties hold"]),
        ("gc-pause-zombie", "kafka_08", ["What needs a look", "single ownership"]),
        ("gc-pause-zombie", "hardened", ["known limit", "no client of ZooKeeper"]),
        ("partition-moves", "kafka_08", ["how each partition moved to other brokers"]),
        ("rolling-restart", "hardened", ["Not exercised by this run", "leave broker/0"]),
    ],
)
def test_the_page_says_what_the_report_says(
    name: str, variant: str, said: list[str], tmp_path: Path
) -> None:
    """Verdict, sentence, properties and command; every link leads to a file beside it."""
    folder = ran(tmp_path, name, "--variant", variant)
    page = Page((folder / "index.html").read_text())
    text = re.sub(r"\s+", " ", page.text)
    verdict = json.loads((folder / "verdict.json").read_text())

    for words in (*said, verdict["command"], verdict["fingerprint"]):
        assert words in text
    assert page.images
    places = {place.partition("#")[0] for place in (*page.links, *page.images)}
    assert places == {path.name for path in folder.iterdir()} - {"index.html"}


def test_the_page_says_why(tmp_path: Path) -> None:
    """Below each failing property, with links to the moments in the page of events."""
    folder = ran(tmp_path, "gc-pause-zombie", "--variant", "kafka_08")
    page = Page((folder / "index.html").read_text())
    result = simulate("gc-pause-zombie", variant="kafka_08")
    for chain in result.why:
        assert f"spacetime.html#seq={chain.seq}" in page.links
        for line in chain.lines:
            assert f"{seconds(line.t_us)}{line.text}" in page.text.replace("\n", "")
            assert f"spacetime.html#seq={line.seq}" in page.links


def test_names_cannot_become_markup(tmp_path: Path) -> None:
    """The name of a topic comes from a file of the user, and so does that of a scenario."""
    source = tmp_path / "odd.yaml"
    text = Path(__file__).parents[2].joinpath("scenarios/files/consumer-crash.yaml").read_text()
    source.write_text(
        re.sub("about: .*\n(  .*\n)*", 'about: "<script>alert(1)</script>"\n', text)
    )
    folder = ran(tmp_path / "runs", str(source))
    assert "<script" not in (folder / "index.html").read_text()


def test_report_writes_the_page_again(tmp_path: Path) -> None:
    """From the verdict and the trace."""
    folder = ran(tmp_path, "consumer-crash")
    first = (folder / "index.html").read_bytes()
    (folder / "index.html").unlink()
    assert run_command(["report", str(folder)]) == 0
    assert (folder / "index.html").read_bytes() == first


def test_open_opens_the_last_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Or the one that is named; a page that is missing is written."""
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", lambda url: opened.append(url) or True)
    monkeypatch.chdir(tmp_path)
    assert run_command(["run", "steady-join", "--no-pictures"]) == 0
    assert run_command(["run", "consumer-crash", "--no-pictures"]) == 0

    assert run_command(["open"]) == 0
    assert run_command(["open", "runs/steady-join-hardened-sim-0"]) == 0
    assert [Path(url).parent.name for url in opened] == [
        "consumer-crash-hardened-sim-0",
        "steady-join-hardened-sim-0",
    ]
    assert "runs/steady-join-hardened-sim-0/index.html\n" in capsys.readouterr().out
    Page(Path("runs/steady-join-hardened-sim-0/index.html").read_text())


def test_every_page_says_its_run(tmp_path: Path) -> None:
    """The verdict, the command, and the way to the first page and to the others; once."""
    folder = ran(tmp_path, "consumer-crash")
    assert run_command(["report", str(folder)]) == 0
    pages = {"ownership.html", "spacetime.html"}
    for name in pages:
        text = (folder / name).read_text()
        head = text[: text.index("</header>")]
        assert set(re.findall('href="([^"]+)"', head)) == {"index.html", *pages - {name}}
        assert ">holds</span>" in head
        assert "watchkeeper run consumer-crash --variant hardened --seed 0" in head
        assert text.count("<!-- run -->") == head.count("<!-- run -->") == 1


def test_pages_link_the_first_violation(tmp_path: Path) -> None:
    """The first line of each leads to its moment; that of a run that holds names none."""
    folder = ran(tmp_path, "session-expiry", "--variant", "stale-memory", code=1)
    verdict = json.loads((folder / "verdict.json").read_text())
    known = [one for one in verdict["properties"] if "why" in one and one["counts"]]
    first = min(known, key=lambda one: one["why"]["at_s"])
    for name in ("ownership.html", "spacetime.html"):
        text = (folder / name).read_text()
        head = text[: text.index("</header>")]
        assert f'"spacetime.html#seq={first["why"]["seq"]}">{first["name"]} violated' in head


def test_latest_leads_to_the_run_that_ended_last(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is no run of its own, and nothing that the user has put there is replaced."""
    monkeypatch.chdir(tmp_path)
    assert run_command(["run", "steady-join", "--no-pictures"]) == 0
    assert run_command(["run", "consumer-crash", "--no-pictures"]) == 0
    link = Path("runs/latest")
    assert link.readlink() == Path("consumer-crash-hardened-sim-0")
    assert first_page(link) == link / "index.html"
    assert first_page(Path("runs")).parent.name == "consumer-crash-hardened-sim-0"
    assert len(gathered((Path("runs"),)).runs) == 2
    assert len(gathered(tuple(Path("runs").iterdir())).runs) == 2

    link.unlink()
    link.mkdir()
    assert run_command(["run", "steady-join", "--no-pictures"]) == 0
    assert not link.is_symlink()


def test_open_says_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """No run, a verdict that is cut, or no browser."""
    monkeypatch.setattr(webbrowser, "open", lambda url: False)
    monkeypatch.chdir(tmp_path)
    assert run_command(["open"]) == 4
    assert "runs has no run; expected a folder with runs, or of a run" in capsys.readouterr().err

    assert run_command(["run", "consumer-crash", "--no-pictures"]) == 0
    assert run_command(["open"]) == 0
    assert "no browser is there to open it" in capsys.readouterr().err

    Path("runs/consumer-crash-hardened-sim-0/verdict.json").write_text("{")
    assert run_command(["open"]) == 4
    assert "verdict.json cannot be read; run the scenario again" in capsys.readouterr().err
