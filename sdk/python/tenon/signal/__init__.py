"""Signal processing, with the names of torch.signal. Contains windows."""

from tenon.signal import windows

__all__ = ["windows"]
