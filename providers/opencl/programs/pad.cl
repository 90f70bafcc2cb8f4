// pad moves elements as bits: EP_BITS is uchar, ushort, uint or ulong.

enum { PAD_CONSTANT = 1, PAD_REFLECT = 2, PAD_EDGE = 3 };

// Mirrors PadParameters of kernels/movement.cpp.
struct pad_parameters {
  ulong count;
  ulong value;
  ulong dst;
  ulong src;
  ulong dims[8];
  ulong dst_strides[8];
  ulong src_strides[8];
  long src_dims[8];
  long low[8];
  int rank;
  int mode;
};

kernel void pad(global EP_BITS* dst, global const EP_BITS* src, struct pad_parameters p) {
  ulong rest = get_global_id(0);
  if (rest >= p.count) return;
  ulong to = p.dst;
  ulong from = p.src;
  bool outside = false;
  for (int axis = p.rank - 1; axis >= 0; --axis) {
    const ulong quotient = rest <= 0xffffffffu ? (uint)rest / (uint)p.dims[axis] : rest / p.dims[axis];
    const ulong position = rest - quotient * p.dims[axis];
    rest = quotient;
    to += position * p.dst_strides[axis];
    const long length = p.src_dims[axis];
    long at = (long)position - p.low[axis];
    if (at < 0 || at >= length) {
      if (p.mode == PAD_CONSTANT) {
        outside = true;
        at = 0;
      } else if (p.mode == PAD_REFLECT) {
        at = at < 0 ? -at : 2 * (length - 1) - at;
      } else {
        at = at < 0 ? 0 : length - 1;
      }
    }
    from += (ulong)at * p.src_strides[axis];
  }
  dst[to] = outside ? (EP_BITS)p.value : src[from];
}
