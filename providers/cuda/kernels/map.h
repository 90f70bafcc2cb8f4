// The loop of the element-wise kernels. A thread takes chunks of the innermost axis, finds each operand's part of the
// chunk, and computes the scalar function on it. Strides, storage types and alignment are handled only here.
#pragma once

#include "providers/cuda/kernels/element.h"
#include "providers/cuda/kernels/fault.h"

namespace tenon::provider::cuda {

// The position of one chunk: an offset in elements for each operand.
struct MapPlace {
  int64_t count;  // elements in the chunk
  int64_t offsets[map_max_operands];
  bool asked = false;  // the loads of its packs have been issued
};

// How a source is read: as numbers of a class, or as bits in unsigned integers.
template <class Class>
struct Numbers {
  using Value = Class;
  template <class Visit>
  TENON_ON_GPU static void visit(int32_t dtype, const Visit& visit) {
    with_storage<Class>(dtype, visit);
  }
};
template <class Bits>
struct BitsOf {
  using Value = Bits;
  template <class Visit>
  TENON_ON_GPU static void visit(int32_t, const Visit& visit) {
    visit(Bits{});
  }
};

// The words of one pack: `map_chunk` elements of `size` bytes. Elements are extracted only when needed, because
// extracting waits for the load.
template <int size>
struct alignas(pack_alignment(size)) PackWords {
  uint32_t at[size * map_chunk / 4];
};
template <class Storage>
TENON_ON_GPU Storage element_of(const uint32_t* words, int i) {
  if constexpr (sizeof(Storage) == 8)
    return bits_as<Storage>(words[2 * i] | static_cast<uint64_t>(words[2 * i + 1]) << 32);
  else if constexpr (sizeof(Storage) == 4)
    return bits_as<Storage>(words[i]);
  else if constexpr (sizeof(Storage) == 2)
    return bits_as<Storage>(static_cast<uint16_t>(words[i / 2] >> (16 * (i % 2))));
  else
    return bits_as<Storage>(static_cast<uint8_t>(words[i / 4] >> (8 * (i % 4))));
}

// The packs of source `operand` and of the sources after it. Their loads are issued before their values are needed.
template <int operand, class... Sources>
struct Ahead {
  TENON_ON_GPU void ask(const MapArguments&, int64_t) {}
  TENON_ON_GPU void choose(bool, const Ahead&, const Ahead&) {}
};
template <int operand, class Source, class... Rest>
struct Ahead<operand, Source, Rest...> {
  uint32_t words[sizeof(typename Source::Value) * map_chunk / 4];
  Ahead<operand + 1, Rest...> rest;

  TENON_ON_GPU void ask(const MapArguments& map, int64_t number) {
    const MapOperand& from = map.operands[operand];
    if (from.address != 0) {
      Source::visit(from.dtype, [&](auto storage) {
        constexpr int size = sizeof(storage);
        const auto pack = reinterpret_cast<const PackWords<size>*>(from.address)[number];
        TENON_UNROLL
        for (int i = 0; i < size * map_chunk / 4; ++i) words[i] = pack.at[i];
      });
    }
    rest.ask(map, number);
  }
  TENON_ON_GPU void choose(bool is_first, const Ahead& first, const Ahead& second) {
    TENON_UNROLL
    for (size_t i = 0; i < sizeof words / sizeof words[0]; ++i) words[i] = is_first ? first.words[i] : second.words[i];
    rest.choose(is_first, first.rest, second.rest);
  }
};

template <int operands, int chunk>
TENON_ON_GPU MapPlace place_of(const MapArguments& map, uint32_t number) {
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
TENON_ON_GPU Class scalar_of(uint64_t bits) {
  Class value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

template <class Class, int chunk>
TENON_ON_GPU void load_operand(Class* values, const MapArguments& map, int operand, const MapPlace& place) {
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

// Loads a source in a loop that issues loads early.
template <int operand, class Source, class... Rest>
TENON_ON_GPU void load_source(typename Source::Value* values, const MapArguments& map, const MapPlace& place,
                              const Ahead<operand, Source, Rest...>& ahead) {
  using Value = typename Source::Value;
  const MapOperand& from = map.operands[operand];
  if (from.address == 0) {
    const auto value = scalar_of<Value>(from.scalar);
    TENON_UNROLL
    for (int i = 0; i < map_chunk; ++i) values[i] = value;
    return;
  }
  Source::visit(from.dtype, [&](auto storage) {
    using Storage = decltype(storage);
    if (place.asked) {
      TENON_UNROLL
      for (int i = 0; i < map_chunk; ++i) values[i] = widen<Value>(element_of<Storage>(ahead.words, i));
    } else {
      load_chunk_as<map_chunk, Storage>(values, from.address, place.offsets[operand], from.strides[map.rank - 1],
                                        from.vector != 0, place.count);
    }
  });
}

// Stores values of class Class, or bools.
template <class Class, int chunk, class Value>
TENON_ON_GPU void store_result(const Value* values, const MapArguments& map, const MapPlace& place) {
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
TENON_ON_GPU void for_each_chunk(const MapArguments& map, const Body& body) {
  for (int64_t number = thread_in_grid(); number < map.chunks; number += threads_in_grid()) {
    body(place_of<operands, chunk>(map, static_cast<uint32_t>(number)));
  }
}

// Calls body(place, ahead) for every chunk of map_chunk elements; `ahead` holds the packs of the sources. If every
// operand is one run, a thread takes one chunk, or two chunks that are a block's width apart, and issues all their
// loads first. Both chunks use one copy of the body, so a long scalar function is compiled once.
template <class... Sources, class Body>
TENON_ON_GPU void for_each_chunk_of(const MapArguments& map, const Body& body) {
  constexpr int operands = 1 + static_cast<int>(sizeof...(Sources));
  const bool run = map.steps != 0;
  const int64_t stride = run ? threads_in_block() : threads_in_grid();
  int64_t number = run ? block_in_grid() * map.steps * stride + thread_in_block() : thread_in_grid();
  int64_t end = map.chunks;
  if (run && number + map.steps * stride < end) end = number + map.steps * stride;
  const int64_t whole = run ? map.inner / map_chunk : 0;
  Ahead<1, Sources...> first{};
  Ahead<1, Sources...> second{};
  if (number < whole) first.ask(map, number);
  if (number + stride < end && number + stride < whole) second.ask(map, number + stride);
  const int64_t start = number;
  TENON_ROLLED
  for (; number < end; number += stride) {
    Ahead<1, Sources...> now;
    now.choose(number == start, first, second);
    MapPlace place{};
    if (number < whole) {
      place.asked = true;
      place.count = map_chunk;
      place.offsets[0] = number * map_chunk;
    } else {
      place = place_of<operands, map_chunk>(map, static_cast<uint32_t>(number));
    }
    body(place, now);
  }
}

}  // namespace tenon::provider::cuda
