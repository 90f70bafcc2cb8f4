"""The error that refuses an op list."""


class OpListError(Exception):
    pass
