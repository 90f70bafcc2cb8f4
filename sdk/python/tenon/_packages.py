"""Plug-ins that were installed as packages: the files libtenon_*.so in the folder `tenon_plugins` beside other packages.

The loader searches these folders before the one of this package, and trusts their files by its own rules."""

import os
import sys

from tenon import _tenon

FOLDER = "tenon_plugins"


def plugin_folders(path=None):
    """The folders of plug-ins among the places where Python looks for packages, in their order; relative ones do not count."""
    places = [os.path.join(place, FOLDER) for place in (sys.path if path is None else path) if os.path.isabs(place)]
    return list(dict.fromkeys(place for place in places if os.path.isdir(place)))


for _folder in plugin_folders():
    _tenon._add_plugin_folder(_folder)
