"""The error of an invalid op list."""


class OpListError(Exception):
    pass
