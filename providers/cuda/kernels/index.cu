// gather_<size>: moves elements from places that indices name. A chunk of elements takes one place if the innermost
// axis is one of whole slices, else a place per element.
#include "providers/cuda/kernels/map.h"

namespace tenon::provider::cuda {

// Finds the offset that the indices at `offset` name. False: an index is bad, and is reported.
TENON_ON_GPU bool find_place(const IndexArguments& index, int64_t offset, int64_t* out) {
  const MapOperand& by = index.map.operands[2];
  int64_t place = 0;
  for (int32_t i = 0; i < index.coordinates; ++i) {
    const int64_t at = offset + i * index.coordinate_stride;
    const int64_t given = by.dtype == EP_DTYPE_i64 ? reinterpret_cast<const int64_t*>(by.address)[at]
                                                   : reinterpret_cast<const int32_t*>(by.address)[at];
    const int64_t length = index.lengths[i];
    const int64_t position = given < 0 ? given + length : given;
    if (position < 0 || position >= length) {
      report_fault(index.map.fault, EP_FAULT_INDEX_OUT_OF_RANGE, given, length);
      return false;
    }
    place += position * index.strides[i];
  }
  *out = place;
  return true;
}

template <class Bits>
TENON_ON_GPU void gather(const IndexArguments& index) {
  const MapArguments& map = index.map;
  const MapOperand& to = map.operands[0];
  const MapOperand& from = map.operands[1];
  const int32_t inner = map.rank - 1;
  const int64_t step = map.operands[2].strides[inner];
  for_each_chunk<3, map_chunk>(map, [&](const MapPlace& place) {
    Bits x[map_chunk] = {};
    if (step == 0) {
      int64_t at = 0;
      if (!find_place(index, place.offsets[2], &at)) return;
      load_chunk_as<map_chunk, Bits>(x, from.address, place.offsets[1] + at, from.strides[inner], from.vector != 0,
                                     place.count);
    } else {
      const auto* src = reinterpret_cast<const Bits*>(from.address) + place.offsets[1];
      TENON_UNROLL
      for (int i = 0; i < map_chunk; ++i) {
        int64_t at = 0;
        if (i < place.count && find_place(index, place.offsets[2] + i * step, &at))
          x[i] = src[i * from.strides[inner] + at];
      }
    }
    store_chunk_as<map_chunk, Bits>(x, to.address, place.offsets[0], to.strides[inner], to.vector != 0, place.count);
  });
}

}  // namespace tenon::provider::cuda

namespace kernels = tenon::provider::cuda;
using kernels::IndexArguments;

TENON_KERNEL gather_1(TENON_ARGUMENT(IndexArguments) index) { kernels::gather<uint8_t>(index); }
TENON_KERNEL gather_2(TENON_ARGUMENT(IndexArguments) index) { kernels::gather<uint16_t>(index); }
TENON_KERNEL gather_4(TENON_ARGUMENT(IndexArguments) index) { kernels::gather<uint32_t>(index); }
TENON_KERNEL gather_8(TENON_ARGUMENT(IndexArguments) index) { kernels::gather<uint64_t>(index); }
