"""The wire format of protobuf messages, for tests that write ONNX files without the onnx package.

Format: https://protobuf.dev/programming-guides/encoding
"""


def varint(value):
    """The bytes of an integer, which is taken modulo 2**64."""
    value &= (1 << 64) - 1
    made = bytearray()
    while value >= 0x80:
        made.append(value & 0x7F | 0x80)
        value >>= 7
    made.append(value)
    return bytes(made)


def field(number, value):
    """Field `number` of a message. `value` is an int, a text, or the bytes of a message."""
    if isinstance(value, int):
        return varint(number << 3) + varint(value)
    value = value.encode() if isinstance(value, str) else value
    return varint(number << 3 | 2) + varint(len(value)) + value
