"""The picture and page of messages: throughput, bytes at risk, lag, latency.

`message_path` derives everything from a trace, `charts` holds the charts as values, `layout`
places them, `png` draws the image and `html` the page.
"""
