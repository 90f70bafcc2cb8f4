"""Plug-ins that were installed as Python packages: files libtenon_*.so in folders `tenon_plugins` of sys.path.

The loader searches these folders before the folder of this package, and applies its usual rules of trust."""

import os
import sys

from tenon import _tenon

FOLDER = "tenon_plugins"


def plugin_folders(path=None):
    """Returns the existing plug-in folders in the directories of `path` (sys.path), in order. Ignores relative ones."""
    places = [os.path.join(place, FOLDER) for place in (sys.path if path is None else path) if os.path.isabs(place)]
    return list(dict.fromkeys(place for place in places if os.path.isdir(place)))


for _folder in plugin_folders():
    _tenon._add_plugin_folder(_folder)
