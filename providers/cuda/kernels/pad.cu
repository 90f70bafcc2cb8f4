// pad_<size>: a thread computes a chunk of the innermost axis of the destination.
#include "providers/cuda/kernels/map.h"

namespace tenon::provider::cuda {

// The source position for position `at`, which may lie outside; -1: use the padding value.
TENON_ON_GPU int64_t padded_position(int32_t mode, int64_t at, int64_t length) {
  if (at >= 0 && at < length) return at;
  if (mode == EP_PAD_REFLECT) return at < 0 ? -at : 2 * (length - 1) - at;
  if (mode == EP_PAD_EDGE) return at < 0 ? 0 : length - 1;
  return -1;
}

template <class Bits>
TENON_ON_GPU void pad(const PadArguments& pad) {
  const int32_t inner = pad.rank - 1;
  const auto value = static_cast<Bits>(pad.value);
  const int64_t length = pad.src_dims[inner];
  const int64_t step = pad.src_strides[inner];
  for (int64_t number = thread_in_grid(); number < pad.chunks; number += threads_in_grid()) {
    uint32_t row = static_cast<uint32_t>(number) / pad.row_chunks;
    const int64_t start = (static_cast<uint32_t>(number) - row * pad.row_chunks) * map_chunk;
    const int64_t count = pad.dims[inner] - start < map_chunk ? pad.dims[inner] - start : map_chunk;
    int64_t to = start * pad.dst_strides[inner];
    int64_t from = 0;
    bool inside = true;
    for (int32_t axis = inner - 1; axis >= 0; --axis) {
      const auto dim = static_cast<uint32_t>(pad.dims[axis]);
      const uint32_t next = row / dim;
      const int64_t at = row - next * dim;
      row = next;
      to += at * pad.dst_strides[axis];
      const int64_t position = padded_position(pad.mode, at - pad.low[axis], pad.src_dims[axis]);
      inside = inside && position >= 0;
      from += position * pad.src_strides[axis];
    }
    const int64_t first = start - pad.low[inner];
    Bits x[map_chunk];
    TENON_UNROLL
    for (int i = 0; i < map_chunk; ++i) x[i] = value;
    if (inside && first >= 0 && first + count <= length) {
      load_chunk_as<map_chunk, Bits>(x, pad.src, from + first * step, step, pad.src_vector != 0, count);
    } else if (inside) {
      TENON_UNROLL
      for (int i = 0; i < map_chunk; ++i) {
        const int64_t position = padded_position(pad.mode, first + i, length);
        if (i < count && position >= 0) x[i] = reinterpret_cast<const Bits*>(pad.src)[from + position * step];
      }
    }
    store_chunk_as<map_chunk, Bits>(x, pad.dst, to, pad.dst_strides[inner], pad.dst_vector != 0, count);
  }
}

}  // namespace tenon::provider::cuda

namespace kernels = tenon::provider::cuda;
using kernels::PadArguments;

TENON_KERNEL pad_1(TENON_ARGUMENT(PadArguments) pad) { kernels::pad<uint8_t>(pad); }
TENON_KERNEL pad_2(TENON_ARGUMENT(PadArguments) pad) { kernels::pad<uint16_t>(pad); }
TENON_KERNEL pad_4(TENON_ARGUMENT(PadArguments) pad) { kernels::pad<uint32_t>(pad); }
TENON_KERNEL pad_8(TENON_ARGUMENT(PadArguments) pad) { kernels::pad<uint64_t>(pad); }
