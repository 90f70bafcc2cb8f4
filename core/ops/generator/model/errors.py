"""What an op list is refused with."""


class OpListError(Exception):
    pass
