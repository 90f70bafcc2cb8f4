"""tenon.version: the version of the package, under the names of torch.version."""

from __future__ import annotations

from tenon._tenon import __version__

# The libraries of plug-ins are found at run time, so the package is built for none of them.
cuda: str | None = None
hip: str | None = None
debug = False
