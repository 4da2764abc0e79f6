"""The space-time page: processes and servers as lanes, requests and watch events between them.

`items` lists what is drawn, `swimlanes` orders the lanes, `html` writes the page, drawn by the
scripts beside it.
"""
