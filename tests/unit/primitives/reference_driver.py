"""Runs reference_run with NumPy arrays, and returns NumPy arrays."""
import subprocess

import numpy as np

NUMPY_TYPES = {
    "bool": np.bool_, "i8": np.int8, "i16": np.int16, "i32": np.int32, "i64": np.int64,
    "u8": np.uint8, "u16": np.uint16, "u32": np.uint32, "u64": np.uint64,
    "f16": np.float16, "f32": np.float32, "f64": np.float64,
}

# Floating types NumPy does not have: (bits, exponent bits, mantissa bits, what there is beside finite numbers). "ieee" has
# infinities and NaN, "fn" one NaN of each sign, "fnuz" one NaN where -0 would be, "finite" neither.
NARROW = {
    "bf16": (16, 8, 7, "ieee"), "f8e4m3fn": (8, 4, 3, "fn"), "f8e5m2": (8, 5, 2, "ieee"), "f8e4m3fnuz": (8, 4, 3, "fnuz"),
    "f8e5m2fnuz": (8, 5, 2, "fnuz"), "f6e2m3": (6, 2, 3, "finite"), "f6e3m2": (6, 3, 2, "finite"), "f4e2m1": (4, 2, 1, "finite"),
}

# Integers narrower than a byte: (bits, signed).
SMALL_INTEGERS = {"i4": (4, True), "u4": (4, False), "i2": (2, True), "u2": (2, False)}


def _decode_table(bits, exponent_bits, mantissa_bits, specials):
    codes = np.arange(1 << bits, dtype=np.int64)
    sign = np.where(codes >> (bits - 1), -1.0, 1.0)
    exponent = (codes >> mantissa_bits) & ((1 << exponent_bits) - 1)
    mantissa = (codes & ((1 << mantissa_bits) - 1)).astype(np.float64)
    bias = (1 << (exponent_bits - 1)) - (0 if specials == "fnuz" else 1)
    scaled = mantissa / (1 << mantissa_bits)
    value = np.where(exponent == 0, np.ldexp(scaled, 1 - bias), np.ldexp(1 + scaled, exponent - bias))
    top = exponent == (1 << exponent_bits) - 1
    if specials == "ieee":
        value = np.where(top, np.where(mantissa == 0, np.inf, np.nan), value)
    elif specials == "fn":
        value = np.where(top & (mantissa == (1 << mantissa_bits) - 1), np.nan, value)
    elif specials == "fnuz":
        value = np.where(codes == 1 << (bits - 1), np.nan, value)
    return sign * value


class Narrow:
    """Encodes by looking for the nearest value in the table of all of them; ties go to the even code."""

    def __init__(self, bits, exponent_bits, mantissa_bits, specials):
        self.bits = bits
        self.step = 2.0 ** -mantissa_bits  # from one number to the next one, relative
        self.table = _decode_table(bits, exponent_bits, mantissa_bits, specials)
        self.sign_bit = 1 << (bits - 1)
        positive = self.table[: self.sign_bit]
        self.count = int(np.isfinite(positive).sum())
        self.values = positive[: self.count]
        self.greatest = self.values[-1]
        # The value after the last one, if there were one. Numbers from half way to it on overflow.
        self.limit = self.greatest + (self.greatest - self.values[-2]) / 2
        self.signs_of_zero = specials != "fnuz"
        # Without a NaN, or with one alone, its code has the sign bit and nothing else.
        self.nan = {"ieee": self.count | (1 << (mantissa_bits - 1)), "fn": self.count}.get(specials, self.sign_bit)
        self.overflow = {"ieee": self.count, "finite": self.count - 1}.get(specials, self.nan)

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
        has_sign = np.signbit(values) & (self.signs_of_zero | (code != 0))
        return code | np.where(has_sign, self.sign_bit, 0)


class Powers:
    """f8e8m0: code c is 2^(c - 127), and 255 is NaN. Half way goes up; what is not above 0 is NaN."""

    bits, step, greatest = 8, 1.0, 2.0 ** 127
    values = np.ldexp(1.0, np.arange(-127, 128))

    def decode(self, codes):
        return np.append(self.values, np.nan)[codes]

    def encode(self, values):
        mantissa, exponent = np.frexp(values)
        code = np.maximum(exponent - 1 + (mantissa >= 0.75), -127) + 127
        return np.where((values > 0) & (code <= 254) & np.isfinite(values), code, 255)


NARROW_TYPES = {name: Narrow(*spec) for name, spec in NARROW.items()}
NARROW_TYPES["f8e8m0"] = Powers()


def is_float(dtype):
    return dtype.startswith(("f", "bf"))


def bits_of(dtype):
    if dtype in SMALL_INTEGERS:
        return SMALL_INTEGERS[dtype][0]
    return NARROW_TYPES[dtype].bits if dtype in NARROW_TYPES else 8 * np.dtype(NUMPY_TYPES[dtype]).itemsize


def pack(codes, bits):
    """Codes of this many bits, one behind the other from the low bits up."""
    flat = np.asarray(codes, np.int64).ravel()
    return np.packbits((flat[:, None] >> np.arange(bits) & 1).astype(np.uint8).ravel(), bitorder="little").tobytes()


def unpack(data, bits, count):
    flat = np.unpackbits(np.frombuffer(data, np.uint8), bitorder="little")[: count * bits].reshape(count, bits)
    return (flat.astype(np.int64) << np.arange(bits)).sum(1)


def to_storage(dtype, values):
    """The bytes of `values`: an array of NARROW_TYPES' doubles, of SMALL_INTEGERS' integers, or of its own type."""
    if dtype in NARROW_TYPES:
        return pack(NARROW_TYPES[dtype].encode(np.asarray(values, np.float64)), bits_of(dtype))
    if dtype in SMALL_INTEGERS:
        return pack(values, bits_of(dtype))
    return np.ascontiguousarray(values, NUMPY_TYPES[dtype]).tobytes()


def from_storage(dtype, data, shape):
    count = int(np.prod(shape))
    if dtype in NARROW_TYPES:
        return NARROW_TYPES[dtype].decode(unpack(data, bits_of(dtype), count)).reshape(shape)
    if dtype in SMALL_INTEGERS:
        bits, signed = SMALL_INTEGERS[dtype]
        codes = unpack(data, bits, count)
        return (codes - (codes >> (bits - 1) << bits if signed else 0)).reshape(shape)
    return np.frombuffer(data, NUMPY_TYPES[dtype]).reshape(shape)


def storage_bytes(dtype, shape):
    return (int(np.prod(shape)) * bits_of(dtype) + 7) // 8


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
