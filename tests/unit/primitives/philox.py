"""The numbers of kind `random`, in Python integers and NumPy's f32, as ep_api.h defines them."""
import numpy as np

MASK = 0xFFFFFFFF


def philox4x32(counter, key):
    """Ten rounds, after Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3" (SC11)."""
    x, k = list(counter), list(key)
    for _ in range(10):
        left, right = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(right >> 32) ^ x[1] ^ k[0], right & MASK, (left >> 32) ^ x[3] ^ k[1], left & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return x


def words(seed, offset, count):
    result = []
    for block in range(-(-count // 4)):
        at = (offset + block) & 0xFFFFFFFFFFFFFFFF
        result += philox4x32([at & MASK, at >> 32, 0, 0], [seed & MASK, seed >> 32])
    return np.array(result[:count], np.uint64)


def uniform(dtype, seed, offset, count):
    """As f64, which holds all of them."""
    if dtype == "f64":
        pairs = words(seed, offset, 2 * count).reshape(-1, 2)
        return ((pairs[:, 0] << np.uint64(32) | pairs[:, 1]) >> np.uint64(11)).astype(np.float64) * 2.0 ** -53
    bits = {"f32": 24, "f16": 11, "bf16": 8}[dtype]
    return (words(seed, offset, count) >> np.uint64(32 - bits)).astype(np.float64) * 2.0 ** -bits


def normal(seed, offset, count):
    f = np.float32
    pairs = words(seed, offset, count + count % 2).reshape(-1, 2)
    w, v = pairs[:, 0], pairs[:, 1]
    m, e = np.frexp(((w >> np.uint64(8)) + np.uint64(1)).astype(f))
    low = m < f(0.75)
    m, e = np.where(low, m * f(2), m), np.where(low, e - 1, e) - 24
    s = (m - f(1)) / (m + f(1))
    q = s * s
    series = q * (f(1 / 3) + q * (f(1 / 5) + q * (f(1 / 7) + q * f(1 / 9))))
    r = np.sqrt(f(-2) * (e.astype(f) * f(0.693147182) + (f(2) * s) * (f(1) + series)))
    a = ((v >> np.uint64(8) & np.uint64(0x3FFFFF)).astype(f) * f(2.0 ** -22) - f(0.5)) * f(1.57079637)
    b = a * a
    sine = a * (f(1) + b * (f(-1 / 6) + b * (f(1 / 120) + b * (f(-1 / 5040) + b * f(1 / 362880)))))
    cosine = f(1) + b * (f(-1 / 2) + b * (f(1 / 24) + b * (f(-1 / 720) + b * f(1 / 40320))))
    turn = (v >> np.uint64(30)).astype(np.int64)
    first = np.choose(turn, [cosine, -sine, -cosine, sine])
    second = np.choose(turn, [sine, cosine, -sine, -cosine])
    result = np.stack([first * r, second * r], 1)
    assert result.dtype == f
    return result.ravel()[:count]
