// gather_<size>: reads elements from indexed places. A chunk of elements reads one place if the innermost axis is part
// of whole slices, else each element its own place. scatter_<combination>_<type> combines updates into such places, in
// any order. scatter_claim and then scatter_assign_<size> store the last update of each place.
#include "providers/cuda/kernels/map.h"
#include "sdk/provider/prelude.h"

namespace tenon::provider::cuda {

// Computes the offset that the indices at `offset` select. False if an index is bad, which is reported.
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

// Calls visit(values, i, whole, number) for each element with a valid place. load(place) gives the values of a chunk,
// in one access if possible; i is the position in the chunk, `whole` the offset of the place, `number` the row-major
// number of the element.
template <class Load, class Visit>
TENON_ON_GPU void for_each_place(const IndexArguments& index, const Load& load, const Visit& visit) {
  const MapArguments& map = index.map;
  const int32_t inner = map.rank - 1;
  const int64_t step = map.operands[2].strides[inner];
  for_each_chunk<4, map_chunk>(map, [&](const MapPlace& place) {
    const auto values = load(place);
    int64_t at = 0;
    bool found = step != 0 || find_place(index, place.offsets[2], &at);
    TENON_UNROLL
    for (int i = 0; i < map_chunk; ++i) {
      if (i >= place.count) break;
      if (step != 0) found = find_place(index, place.offsets[2] + i * step, &at);
      if (!found) continue;
      const int64_t number = static_cast<int64_t>(map.operands[3].address) + place.offsets[3];
      visit(values, i, place.offsets[1] + i * map.operands[1].strides[inner] + at,
            number + i * map.operands[3].strides[inner]);
    }
  });
}
template <class T>
struct Chunk {
  T at[map_chunk];
};

// The combinations. Integers wrap around, so they are added as unsigned ones.
struct Adding {
  template <class T>
  TENON_ON_GPU static void apply(T* at, T update) {
    if constexpr (std::is_floating_point_v<T>) {
      add_to(at, update);
    } else {
      using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
      add_to(reinterpret_cast<Word*>(at), static_cast<Word>(update));
    }
  }
};
template <class Combine>
struct Exchanging {
  template <class T>
  TENON_ON_GPU static void apply(T* at, T update) {
    using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;
    auto* word = reinterpret_cast<Word*>(at);
    Word before = *word;
    while (!exchanged(word, &before, bits_as<Word>(Combine::of(bits_as<T>(before), update)))) {
    }
  }
};
struct Product {
  template <class T>
  TENON_ON_GPU static T of(T x, T y) {
    return scalar::ep_mul(x, y);
  }
};
struct Lesser {
  template <class T>
  TENON_ON_GPU static T of(T x, T y) {
    return scalar::ep_min(x, y);
  }
};
struct Greater {
  template <class T>
  TENON_ON_GPU static T of(T x, T y) {
    return scalar::ep_max(x, y);
  }
};

// The whole has elements of type T; updates may have a narrower type of the same class.
template <class Class, class T, class Combination>
TENON_ON_GPU void scatter(const IndexArguments& index) {
  auto* whole = reinterpret_cast<T*>(index.map.operands[1].address);
  const auto load_updates = [&](const MapPlace& place) {
    Chunk<Class> values{};
    load_operand<Class, map_chunk>(values.at, index.map, 0, place);
    return values;
  };
  for_each_place(index, load_updates, [&](const Chunk<Class>& values, int i, int64_t to, int64_t) {
    Combination::apply(whole + to, static_cast<T>(values.at[i]));
  });
}

TENON_ON_GPU void claim_places(const IndexArguments& index) {
  const auto nothing = [](const MapPlace&) { return 0; };
  for_each_place(index, nothing, [&](int, int, int64_t to, int64_t number) {
    if (index.wide_owners != 0)
      raise(reinterpret_cast<uint64_t*>(index.owners) + to, static_cast<uint64_t>(number + 1));
    else
      raise(reinterpret_cast<uint32_t*>(index.owners) + to, static_cast<uint32_t>(number + 1));
  });
}

template <class Bits>
TENON_ON_GPU void assign(const IndexArguments& index) {
  const MapOperand& updates = index.map.operands[0];
  auto* whole = reinterpret_cast<Bits*>(index.map.operands[1].address);
  const auto load_updates = [&](const MapPlace& place) {
    Chunk<Bits> values{};
    load_chunk_as<map_chunk, Bits>(values.at, updates.address, place.offsets[0], updates.strides[index.map.rank - 1],
                                   updates.vector != 0, place.count);
    return values;
  };
  for_each_place(index, load_updates, [&](const Chunk<Bits>& values, int i, int64_t to, int64_t number) {
    const uint64_t owner = index.wide_owners != 0 ? reinterpret_cast<const uint64_t*>(index.owners)[to]
                                                  : reinterpret_cast<const uint32_t*>(index.owners)[to];
    if (owner == static_cast<uint64_t>(number + 1)) whole[to] = values.at[i];
  });
}

}  // namespace tenon::provider::cuda

namespace kernels = tenon::provider::cuda;
using kernels::IndexArguments;

TENON_KERNEL gather_1(TENON_ARGUMENT(IndexArguments) index) { kernels::gather<uint8_t>(index); }
TENON_KERNEL gather_2(TENON_ARGUMENT(IndexArguments) index) { kernels::gather<uint16_t>(index); }
TENON_KERNEL gather_4(TENON_ARGUMENT(IndexArguments) index) { kernels::gather<uint32_t>(index); }
TENON_KERNEL gather_8(TENON_ARGUMENT(IndexArguments) index) { kernels::gather<uint64_t>(index); }

TENON_KERNEL scatter_claim(TENON_ARGUMENT(IndexArguments) index) { kernels::claim_places(index); }
TENON_KERNEL scatter_assign_1(TENON_ARGUMENT(IndexArguments) index) { kernels::assign<uint8_t>(index); }
TENON_KERNEL scatter_assign_2(TENON_ARGUMENT(IndexArguments) index) { kernels::assign<uint16_t>(index); }
TENON_KERNEL scatter_assign_4(TENON_ARGUMENT(IndexArguments) index) { kernels::assign<uint32_t>(index); }
TENON_KERNEL scatter_assign_8(TENON_ARGUMENT(IndexArguments) index) { kernels::assign<uint64_t>(index); }

#define TENON_SCATTER(name, Combination, type, Class, T)                       \
  TENON_KERNEL scatter_##name##_##type(TENON_ARGUMENT(IndexArguments) index) { \
    kernels::scatter<Class, T, Combination>(index);                            \
  }
#define TENON_SCATTER_TYPES(name, Combination)              \
  TENON_SCATTER(name, Combination, f32, float, float)       \
  TENON_SCATTER(name, Combination, f64, double, double)     \
  TENON_SCATTER(name, Combination, i32, int64_t, int32_t)   \
  TENON_SCATTER(name, Combination, i64, int64_t, int64_t)   \
  TENON_SCATTER(name, Combination, u32, uint64_t, uint32_t) \
  TENON_SCATTER(name, Combination, u64, uint64_t, uint64_t)
TENON_SCATTER_TYPES(add, kernels::Adding)
TENON_SCATTER_TYPES(mul, kernels::Exchanging<kernels::Product>)
TENON_SCATTER_TYPES(min, kernels::Exchanging<kernels::Lesser>)
TENON_SCATTER_TYPES(max, kernels::Exchanging<kernels::Greater>)
