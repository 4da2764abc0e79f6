"""The picture and page of ownership: who fetched each partition, and when.

`ownership` derives the board from a trace, `inset` chooses the part to show closer, `layout`
places everything, `panel`, `legend` and `png` draw the image; `html` writes the page, drawn by
the scripts beside it.
"""
