"""Why a model could not be had. Messages are for whoever runs the command."""

from __future__ import annotations


class ModelStoreError(Exception):
    """Nothing that was complete before has been changed."""


class SourceUnreachable(ModelStoreError):
    """The source did not answer, or broke off again and again. What came is kept: the next try goes on from there."""


class SourceWrong(ModelStoreError):
    """The source answered something that cannot be used."""


class ChecksumWrong(ModelStoreError):
    """A file's content is not what the source says that it is, twice."""


class NoRoom(ModelStoreError):
    """The disk is too full for it."""


class AlreadyFetching(ModelStoreError):
    """Another process fetches this model into this folder now."""
