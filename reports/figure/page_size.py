"""The size of the canvas for images, in inches, and of the text on it."""

from __future__ import annotations

WIDTH = 11.0
MARGIN = 0.3
DPI = 160
POINTS_AN_INCH = 72.0
FAMILY = "DejaVu Sans"
"""It ships with matplotlib, so a picture is the same on every machine."""

TITLE_SIZE = 14.0
SUBTITLE_SIZE = 10.0
HEADING_SIZE = 9.5
LABEL_SIZE = 8.5
LEGEND_SIZE = 8.0
