"""What the HTTP servers of commands have in common."""

from __future__ import annotations

from http.server import BaseHTTPRequestHandler
from typing import Any


class QuietHandler(BaseHTTPRequestHandler):
    """A handler that logs nothing: the terminal belongs to the command."""

    def answer(self, status: int, kind: str, content: bytes) -> None:
        """Answer a request with content of a kind, which no cache may keep."""
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *values: Any) -> None:
        """Log nothing."""
