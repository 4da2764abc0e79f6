"""The picture of leaders: who leads each partition, with which ISR, under which controller.

`png` draws it; what it shows is in `facts/control_plane`.
"""
