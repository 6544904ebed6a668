"""A double: nothing but a version."""

__version__ = "2.3.1"
