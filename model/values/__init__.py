"""What the values of the model are made of: frozen dataclasses that are cheap to import.

`frozen` is read in place of `dataclasses.dataclass` wherever a class is frozen and has slots.
"""
