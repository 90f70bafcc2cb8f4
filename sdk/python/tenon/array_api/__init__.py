"""The namespace of the array API standard (data-apis.org/array-api), over tenon.Tensor.

    xp = x.__array_namespace__()          # tenon.array_api, for every tensor
    xp.mean(xp.asarray([1.0, 2.0]))

README.md of this folder lists what it contains and what is missing.
"""

from tenon import Device as Device, Tensor as Tensor
from tenon import bool as bool, float32 as float32, float64 as float64
from tenon import e as e, inf as inf, nan as nan, newaxis as newaxis, pi as pi
from tenon import int8 as int8, int16 as int16, int32 as int32, int64 as int64
from tenon import uint8 as uint8, uint16 as uint16, uint32 as uint32, uint64 as uint64
from tenon.array_api import fft as fft, linalg as linalg
from tenon.array_api._creation import *
from tenon.array_api._dtypes import *
from tenon.array_api._elementwise import *
from tenon.array_api._info import *
from tenon.array_api._manipulation import *
from tenon.array_api._searching import *
from tenon.array_api._statistics import *
from tenon.array_api.linalg import matmul as matmul, matrix_transpose as matrix_transpose, tensordot as tensordot, vecdot as vecdot

# Programs for older versions work too, since the standard only adds functions.
VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
__array_api_version__ = VERSIONS[-1]
