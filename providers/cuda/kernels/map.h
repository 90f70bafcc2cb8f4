// The walk of the element-wise kernels: a thread takes chunks of the innermost axis, looks up where each operand has
// them, and hands them to a row. Strides, storage types and odd addresses are dealt with here, once.
#pragma once

#include "providers/cuda/kernels/element.h"

namespace tenon::provider::cuda {

// Where one chunk begins, in elements of each operand.
struct MapPlace {
  int64_t count;  // elements of the chunk
  int64_t offsets[map_max_operands];
};

template <int operands, int chunk>
TENON_DEVICE MapPlace place_of(const MapArguments& map, uint32_t number) {
  MapPlace place;
  uint32_t row = 0;
  if (map.rank > 1) {
    row = number / map.row_chunks;
    number -= row * map.row_chunks;
  }
  const int64_t start = static_cast<int64_t>(number) * chunk;
  place.count = map.inner - start < chunk ? map.inner - start : chunk;
  TENON_UNROLL
  for (int i = 0; i < operands; ++i) place.offsets[i] = start * map.operands[i].strides[map.rank - 1];
  for (int32_t axis = map.rank - 2; axis >= 0; --axis) {
    const uint32_t next = row / map.dims[axis];
    const int64_t at = row - next * map.dims[axis];
    row = next;
    TENON_UNROLL
    for (int i = 0; i < operands; ++i) place.offsets[i] += at * map.operands[i].strides[axis];
  }
  return place;
}

template <class Class>
TENON_DEVICE Class scalar_of(uint64_t bits) {
  Class value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

template <class Class, int chunk>
TENON_DEVICE void load_operand(Class* values, const MapArguments& map, int operand, const MapPlace& place) {
  const MapOperand& from = map.operands[operand];
  if (from.address == 0) {
    const Class value = scalar_of<Class>(from.scalar);
    TENON_UNROLL
    for (int i = 0; i < chunk; ++i) values[i] = value;
    return;
  }
  with_storage<Class>(from.dtype, [&](auto storage) {
    load_chunk_as<chunk, decltype(storage)>(values, from.address, place.offsets[operand], from.strides[map.rank - 1],
                                            from.vector != 0, place.count);
  });
}

// Values of class Class, or truth values for rows that answer a question.
template <class Class, int chunk, class Value>
TENON_DEVICE void store_result(const Value* values, const MapArguments& map, const MapPlace& place) {
  const MapOperand& to = map.operands[0];
  const int64_t stride = to.strides[map.rank - 1];
  if constexpr (std::is_same_v<Value, bool>) {
    store_chunk_as<chunk, Bool>(values, to.address, place.offsets[0], stride, to.vector != 0, place.count);
  } else {
    with_storage<Class>(to.dtype, [&](auto storage) {
      store_chunk_as<chunk, decltype(storage)>(values, to.address, place.offsets[0], stride, to.vector != 0,
                                               place.count);
    });
  }
}

template <int operands, int chunk, class Body>
TENON_DEVICE void for_each_chunk(const MapArguments& map, const Body& body) {
  for (int64_t number = thread_in_grid(); number < map.chunks; number += threads_in_grid()) {
    body(place_of<operands, chunk>(map, static_cast<uint32_t>(number)));
  }
}

// Keeps the first fault of the launch.
TENON_DEVICE void report_fault(const FaultTarget& target, int32_t code, int64_t value) {
  if (target.claim == 0 || !claim_raised(reinterpret_cast<uint64_t*>(target.claim), target.sequence)) return;
  auto* slot = reinterpret_cast<FaultSlot*>(target.slot);
  slot->value = value;
  slot->code = code;
  publish();
  slot->sequence = target.sequence;
}

}  // namespace tenon::provider::cuda
