"""Tenon: tensors on any device that a plug-in describes.

    import tenon
    x = tenon.tensor([[1.0, -2.0]])         # or of a NumPy array, or anything with DLPack
    y = tenon.relu(x) + 1                    # every op of `tenon ops` is a function of its name
    numpy.asarray(y)                         # without a copy where the host reaches the memory
"""

from tenon._tenon import *
from tenon._tenon import __version__
