"""Signals, as torch.signal: windows."""

from tenon.signal import windows

__all__ = ["windows"]
