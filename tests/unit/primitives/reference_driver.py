"""Runs reference_run with NumPy arrays, and returns NumPy arrays."""
import subprocess

import numpy as np

NUMPY_TYPES = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
}

# Floating types NumPy does not have: (bits, exponent bits, mantissa bits, has infinities).
NARROW = {"bf16": (16, 8, 7, True), "f8e4m3fn": (8, 4, 3, False), "f8e5m2": (8, 5, 2, True)}


def _decode_table(bits, exponent_bits, mantissa_bits, has_infinity):
    codes = np.arange(1 << bits, dtype=np.int64)
    sign = np.where(codes >> (bits - 1), -1.0, 1.0)
    exponent = (codes >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = (codes & ((1 << mantissa_bits) - 1)).astype(np.float64)
    bias = (1 << (exponent_bits - 1)) - 1
    scaled = mantissa / (1 << mantissa_bits)
    value = np.where(exponent == 0, np.ldexp(scaled, 1 - bias), np.ldexp(1 + scaled, exponent - bias))
    top = exponent == (1 << exponent_bits) - 1
    if has_infinity:
        value = np.where(top, np.where(mantissa == 0, np.inf, np.nan), value)
    else:
        value = np.where(top & (mantissa == (1 << mantissa_bits) - 1), np.nan, value)
    return sign * value


class Narrow:
    """Encodes by looking for the nearest value in the table of all of them; ties go to the even code."""

    def __init__(self, bits, exponent_bits, mantissa_bits, has_infinity):
        self.code_type = np.uint16 if bits == 16 else np.uint8
        self.table = _decode_table(bits, exponent_bits, mantissa_bits, has_infinity)
        half = 1 << (bits - 1)
        self.sign_bit = half
        positive = self.table[:half]
        finite = np.isfinite(positive)
        self.count = int(finite.sum())
        self.values = positive[: self.count]
        self.greatest = self.values[-1]
        # The value after the last one, if there were one. Numbers from half way to it on overflow.
        self.limit = self.greatest + (self.greatest - self.values[-2]) / 2
        self.overflow = self.count  # infinity, or NaN in a format without infinity
        self.nan = int(np.flatnonzero(np.isnan(positive))[0])
        if has_infinity:
            self.nan = self.count | (1 << (mantissa_bits - 1))

    def decode(self, codes):
        return self.table[codes]

    def encode(self, values):
        magnitude = np.abs(values)
        above = np.clip(np.searchsorted(self.values, magnitude), 0, self.count - 1)
        below = np.clip(above - 1, 0, self.count - 1)
        to_above = self.values[above] - magnitude
        to_below = magnitude - self.values[below]
        tie = np.where(above % 2 == 0, above, below)
        code = np.where(to_above < to_below, above, np.where(to_above > to_below, below, tie))
        code = np.where(magnitude <= self.greatest, code, self.count - 1)
        # The last code is even or odd; half way to where the next would be goes to the even one.
        beyond = (magnitude > self.limit) | ((magnitude == self.limit) & ((self.count - 1) % 2 == 1))
        code = np.where(beyond, self.overflow, code)
        code = np.where(np.isnan(values), self.nan, code)
        return (code | np.where(np.signbit(values), self.sign_bit, 0)).astype(self.code_type)


NARROW_TYPES = {name: Narrow(*spec) for name, spec in NARROW.items()}


def is_float(dtype):
    return dtype.startswith(("f", "bf"))


def to_storage(dtype, values):
    """The bytes of `values`: an array of NARROW_TYPES' doubles, of small integers for i4 and u4, or of its own type."""
    if dtype in NARROW_TYPES:
        return NARROW_TYPES[dtype].encode(np.asarray(values, np.float64)).tobytes()
    if dtype in ("i4", "u4"):
        nibbles = np.asarray(values, np.int64).ravel() & 15
        if nibbles.size % 2:
            nibbles = np.append(nibbles, 0)
        return (nibbles[0::2] | nibbles[1::2] << 4).astype(np.uint8).tobytes()
    return np.ascontiguousarray(values, NUMPY_TYPES[dtype]).tobytes()


def from_storage(dtype, data, shape):
    if dtype in NARROW_TYPES:
        narrow = NARROW_TYPES[dtype]
        return narrow.decode(np.frombuffer(data, narrow.code_type)).reshape(shape)
    if dtype in ("i4", "u4"):
        packed = np.frombuffer(data, np.uint8).astype(np.int64)
        nibbles = np.stack([packed & 15, packed >> 4], 1).ravel()[: int(np.prod(shape))]
        return (nibbles - 16 * (nibbles > 7) * (dtype == "i4")).reshape(shape)
    return np.frombuffer(data, NUMPY_TYPES[dtype]).reshape(shape)


def storage_bytes(dtype, shape):
    count = int(np.prod(shape))
    if dtype in NARROW_TYPES:
        return count * NARROW_TYPES[dtype].code_type().nbytes
    if dtype in ("i4", "u4"):
        return (count + 1) // 2
    return count * np.dtype(NUMPY_TYPES[dtype]).itemsize


def operand_text(role, dtype, shape):
    strides = [int(np.prod(shape[axis + 1:])) for axis in range(len(shape))]
    return f"{role} {dtype}[{','.join(map(str, shape))}]{{{','.join(map(str, strides))}}}"


class Fault(Exception):
    def __init__(self, words, outputs):
        self.code, self.operand, self.value, self.limit = map(int, words)
        self.outputs = outputs
        super().__init__(" ".join(words))


class Reference:
    def __init__(self, program):
        self.program = program
        self.process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE)

    def rows(self):
        text = subprocess.run([self.program, "--rows"], check=True, capture_output=True, text=True).stdout
        return [line.split() for line in text.splitlines()]

    def run(self, kind, attributes, outputs, inputs, scalars=()):
        """outputs: (role, dtype, shape); inputs: (role, dtype, array) or (role, dtype, None) for a scalar operand."""
        words = [kind, attributes, ":"] if attributes else [kind, ":"]
        words += [operand_text(role, dtype, shape) for role, dtype, shape in outputs]
        for role, dtype, values in inputs:
            words.append(f"{role} {dtype} scalar" if values is None else operand_text(role, dtype, np.shape(values)))
        request = " ".join(words) + "\n" + " ".join(f"{dtype}:{value}" for dtype, value in scalars) + "\n"
        payload = request.encode() + b"".join(to_storage(d, v) for _, d, v in inputs if v is not None)
        self.process.stdin.write(payload)
        self.process.stdin.flush()
        answer = self.process.stdout.readline().decode().split()
        if not answer or answer[0] == "error":
            raise AssertionError(f"{request.strip()}: {' '.join(answer)}")
        results = []
        for _, dtype, shape in outputs:
            results.append(from_storage(dtype, self.process.stdout.read(storage_bytes(dtype, shape)), shape))
        if answer[0] == "fault":
            raise Fault(answer[1:], results)
        return results[0] if len(results) == 1 else results

    def close(self):
        self.process.stdin.close()
        self.process.stdout.close()
        self.process.wait()
