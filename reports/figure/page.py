"""HTML pages that need no network and no other file.

Styles and scripts are files of this package and are copied into the page. Content from the
trace reaches a page in two ways only: as escaped text in its head, and as JSON that its script
shows as text. A content security policy in the page forbids it to load anything.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from html import escape
from importlib.resources import files
from typing import Any

import msgspec

POLICY = "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'"
DOCUMENT = """\
<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
{body}
</body>
</html>
"""
BODY = """\
<header>
{run}<h1>{name} <small>{subtitle}</small></h1>
{lines}
<nav id="controls" aria-label="controls"></nav>
<div id="legend"></div>
</header>
<noscript><p class="banner">This page is drawn by a script, which does not run.</p></noscript>
<main id="stage"></main>
<div id="tip" role="tooltip" hidden></div>
<svg id="patterns" width="0" height="0" aria-hidden="true"></svg>
<script type="application/json" id="data">{data}</script>
<script>
{script}</script>"""
RUN = "<!-- run --><!-- end of run -->\n"
"""Where a page says which run it belongs to, what came of it, and where its other pages are."""
_RUN = re.compile(r"<!-- run -->.*?<!-- end of run -->\n", re.DOTALL)
SHARED_SCRIPT = "figure/page.js"
"""The script that every page begins with."""
_TYPES = re.compile(r"^[ \t]*/\*\*(?:[^*]|\*(?!/))*\*/\n", re.MULTILINE)
_ENCODER = msgspec.json.Encoder(order="deterministic")
_IN_SCRIPTS = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def page(
    title: str,
    subtitle: str,
    what: str,
    *,
    lines: Sequence[str],
    banner: str,
    scripts: Sequence[str],
    data: Any,
    styles: Sequence[str] = (),
    policy: str = POLICY,
) -> bytes:
    """Render a page: a heading, a banner if something is left out, and the picture.

    `scripts` and `styles` are the page's own files, by their paths in `watchkeeper.reports`; the
    scripts draw `data`. A page that a command serves may have another security policy.
    """
    body = BODY.format(
        run=RUN,
        name=escape(title),
        subtitle=escape(subtitle),
        lines="\n".join(_paragraphs(lines, banner)),
        data=embedded(data),
        script="\n".join(without_types(_resource(name)) for name in (SHARED_SCRIPT, *scripts)),
    )
    style = "\n".join(_resource(name) for name in ("figure/page.css", *styles))
    whole_title = f"{title}, {subtitle}: {what}"
    return document(title=whole_title, policy=policy, style=style, body=body).encode()


def with_run(text: str, markup: str) -> str:
    """Return a page with the given markup about its run, in place of an earlier one."""
    run = f"<!-- run -->{markup}<!-- end of run -->\n"
    return _RUN.sub(lambda _: run, text, count=1)


def document(*, title: str, policy: str, style: str, body: str) -> str:
    """Return an HTML document with a security policy; `title` is text, the rest is markup."""
    return DOCUMENT.format(title=escape(title), policy=policy, style=style, body=body)


def embedded(data: Any) -> str:
    """Data as JSON that cannot end the element that it stands in."""
    return _ENCODER.encode(data).decode().translate(_IN_SCRIPTS)


def without_types(script: str) -> str:
    """A script without the comments that stand on lines of their own for the type checker."""
    return _TYPES.sub("", script)


def _paragraphs(lines: Sequence[str], banner: str) -> list[str]:
    paragraphs = [f"<p>{escape(line)}</p>" for line in lines if line]
    return paragraphs + ([f'<p class="banner">{escape(banner)}</p>'] if banner else [])


@cache
def _resource(name: str) -> str:
    return files("watchkeeper.reports").joinpath(name).read_text(encoding="utf-8")
