"""The parts that all pictures and pages share.

`canvas` and `page_size` for images (matplotlib), `page` for HTML; `palette` holds the colours,
`panels` and `panel_drawing` a run over an axis of time, `axis_ticks`, `labels` and `title` the
text, `files` atomic writing.
"""
