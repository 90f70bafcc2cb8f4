// one_hot_<size>. The other kernels number selected elements: they count them in pieces, one per block;
// select_offset_block sums the counts; then they read the elements again and know each number. nonzero_count_block and
// nonzero_write_block select elements other than 0. unique_head_count_<bytes of a key>_block and unique_group_<bytes of
// a key>_block select the heads of groups, unique_rank_count_block and unique_rank_block the places of heads, and
// unique_write writes the results.
#include "providers/cuda/kernels/keys.h"
#include "providers/cuda/kernels/map.h"
#include "providers/cuda/kernels/team.h"

namespace tenon::provider::cuda {

template <class Bits>
TENON_ON_GPU void one_hot(const OneHotArguments& hot) {
  const MapArguments& map = hot.map;
  const int32_t inner = map.rank - 1;
  const auto off = static_cast<Bits>(hot.values[0]);
  const auto on = static_cast<Bits>(hot.values[1]);
  for_each_chunk<3, map_chunk>(map, [&](const MapPlace& place) {
    Bits x[map_chunk];
    TENON_UNROLL
    for (int i = 0; i < map_chunk; ++i) {
      x[i] = off;
      if (i >= place.count) continue;
      const MapOperand& src = map.operands[1];
      const int64_t at = place.offsets[1] + i * src.strides[inner];
      const int64_t given = src.dtype == EP_DTYPE_i64 ? reinterpret_cast<const int64_t*>(src.address)[at]
                                                      : reinterpret_cast<const int32_t*>(src.address)[at];
      const int64_t position =
          static_cast<int64_t>(map.operands[2].address) + place.offsets[2] + i * map.operands[2].strides[inner];
      if (position == (given < 0 ? given + hot.length : given)) x[i] = on;
    }
    store_chunk_as<map_chunk, Bits>(x, map.operands[0].address, place.offsets[0], map.operands[0].strides[inner],
                                    map.operands[0].vector != 0, place.count);
  });
}

struct SumOfNumbers {
  TENON_ON_GPU int64_t operator()(int64_t x, int64_t y) const { return x + y; }
};

// Calls visit(job, tile, end) for the tiles of this block's pieces; `end` is the end of the piece.
template <class Visit>
TENON_ON_GPU void for_each_tile(const PieceArguments& pieces, int64_t job, const Visit& visit) {
  const int64_t begin = job * pieces.length;
  const int64_t end = pieces.count - begin < pieces.length ? pieces.count : begin + pieces.length;
  TENON_ROLLED
  for (int64_t tile = begin; tile < end; tile += select_items * row_block)
    visit(tile + thread_in_block() * select_items, end);
}

// Counts the elements of each piece that is_selected(i) accepts.
template <class IsSelected>
TENON_ON_GPU void count_selected(const PieceArguments& pieces, const IsSelected& is_selected) {
  BlockTeam<int64_t> team;
  TENON_ROLLED
  for (int64_t job = block_in_grid(); job < pieces.number; job += blocks_in_grid()) {
    int64_t count = 0;
    for_each_tile(pieces, job, [&](int64_t first, int64_t end) {
      TENON_UNROLL
      for (int j = 0; j < select_items; ++j) count += first + j < end && is_selected(first + j) ? 1 : 0;
    });
    count = team.first(count, SumOfNumbers());
    if (team.rank() == 0) reinterpret_cast<int64_t*>(pieces.counts)[job] = count;
  }
}

// Calls visit(i, number, selected) for each element; `number` counts the elements selected before it.
template <class IsSelected, class Visit>
TENON_ON_GPU void number_selected(const PieceArguments& pieces, const IsSelected& is_selected, const Visit& visit) {
  BlockTeam<int64_t> team;
  TENON_ROLLED
  for (int64_t job = block_in_grid(); job < pieces.number; job += blocks_in_grid()) {
    int64_t carry = reinterpret_cast<const int64_t*>(pieces.counts)[job];
    for_each_tile(pieces, job, [&](int64_t first, int64_t end) {
      bool selected[select_items];
      int64_t count = 0;
      TENON_UNROLL
      for (int j = 0; j < select_items; ++j) {
        selected[j] = first + j < end && is_selected(first + j);
        count += selected[j] ? 1 : 0;
      }
      int64_t total;
      int64_t number = carry + team.before(count, int64_t{0}, SumOfNumbers(), &total);
      carry += total;
      TENON_UNROLL
      for (int j = 0; j < select_items; ++j) {
        if (first + j < end) visit(first + j, number, selected[j]);
        number += selected[j] ? 1 : 0;
      }
    });
  }
}

// The number of selected elements.
TENON_ON_GPU int64_t all_selected(const PieceArguments& pieces) {
  return reinterpret_cast<const int64_t*>(pieces.counts)[pieces.number];
}

TENON_ON_GPU void add_up(const PieceArguments& pieces) {
  BlockTeam<int64_t> team;
  auto* const counts = reinterpret_cast<int64_t*>(pieces.counts);
  int64_t carry = 0;
  TENON_ROLLED
  for (int64_t tile = 0; tile < pieces.number; tile += row_block) {
    const int64_t at = tile + team.rank();
    int64_t total;
    const int64_t before = team.before(at < pieces.number ? counts[at] : 0, int64_t{0}, SumOfNumbers(), &total);
    if (at < pieces.number) counts[at] = carry + before;
    carry += total;
  }
  if (team.rank() != 0) return;
  counts[pieces.number] = carry;
  if (pieces.total != 0) *reinterpret_cast<int64_t*>(pieces.total) = carry;
}

// --- nonzero ---

struct IsNonzero {
  const NonzeroArguments& nonzero;
  TENON_ON_GPU bool operator()(int64_t i) const {
    const int64_t at = offset_in(nonzero.axes, nonzero.axes.src, i);
    const uint64_t bits =
        nonzero.size == 8 ? bits_at<uint64_t>(nonzero.src, at, 8) : bits_at<uint32_t>(nonzero.src, at, nonzero.size);
    // For floats, the sign is shifted out: -0 is 0.
    return (nonzero.is_float != 0 ? bits << (65 - 8 * nonzero.size) : bits) != 0;
  }
};

TENON_ON_GPU void write_nonzero(const NonzeroArguments& nonzero) {
  auto* const dst = reinterpret_cast<int64_t*>(nonzero.dst);
  number_selected(nonzero.pieces, IsNonzero{nonzero}, [&](int64_t i, int64_t number, bool selected) {
    if (!selected || number >= nonzero.rows) return;
    for (int32_t axis = nonzero.rank - 1; axis >= 0; --axis) {
      const int64_t next = axis == 0 ? 0 : quotient(i, nonzero.dims[axis]);
      dst[number * nonzero.dst_strides[0] + axis * nonzero.dst_strides[1]] = i - next * nonzero.dims[axis];
      i = next;
    }
  });
  for (int64_t row = all_selected(nonzero.pieces) + thread_in_grid(); row < nonzero.rows; row += threads_in_grid()) {
    for (int32_t axis = 0; axis < nonzero.rank; ++axis)
      dst[row * nonzero.dst_strides[0] + axis * nonzero.dst_strides[1]] = 0;
  }
}

// --- unique ---

TENON_ON_GPU int64_t place_of_sorted(const UniqueArguments& unique, int64_t i) {
  return unique.keys != 0 ? reinterpret_cast<const uint32_t*>(unique.places)[i] : i;
}

// True if sorted element i differs from the one before it. NaN differs from everything.
template <class Key>
struct IsHead {
  const UniqueArguments& unique;
  KeyForm<Key> form;
  TENON_ON_GPU explicit IsHead(const UniqueArguments& arguments) : unique(arguments), form(arguments.form) {}
  TENON_ON_GPU Key key(int64_t i) const {
    return unique.keys != 0 ? reinterpret_cast<const Key*>(unique.keys)[i]
                            : form.key(bits_at<Key>(unique.src, i, unique.form.size));
  }
  TENON_ON_GPU bool operator()(int64_t i) const {
    if (i == 0) return true;
    const Key own = key(i);
    return form.is_nan(own) || own != key(i - 1);
  }
};

template <class Key>
TENON_ON_GPU void number_groups(const UniqueArguments& unique) {
  auto* const groups = reinterpret_cast<uint32_t*>(unique.groups);
  auto* const heads = reinterpret_cast<uint32_t*>(unique.heads);
  number_selected(unique.pieces, IsHead<Key>(unique), [&](int64_t i, int64_t number, bool selected) {
    const int64_t group = selected ? number : number - 1;
    groups[i] = static_cast<uint32_t>(group);
    if (i == unique.pieces.count - 1) heads[group + 1] = static_cast<uint32_t>(i + 1);
    if (!selected) return;
    heads[group] = static_cast<uint32_t>(i);
    if (unique.ranks != 0) reinterpret_cast<uint32_t*>(unique.ranks)[place_of_sorted(unique, i)] = 1;
  });
}

// Places of heads are marked with 1, others with 0.
struct IsMarked {
  const UniqueArguments& unique;
  TENON_ON_GPU bool operator()(int64_t place) const {
    return reinterpret_cast<const uint32_t*>(unique.ranks)[place] != 0;
  }
};

TENON_ON_GPU void put_element(const UniqueArguments& unique, int64_t to, int64_t place, bool exists) {
  const int32_t size = unique.form.size;
  const int64_t at = to * unique.dst_stride;
  if (size == 8)
    put_bits<uint64_t>(unique.dst, at, 8, exists ? bits_at<uint64_t>(unique.src, place, 8) : 0);
  else
    put_bits<uint32_t>(unique.dst, at, size, exists ? bits_at<uint32_t>(unique.src, place, size) : 0);
}

TENON_ON_GPU void write_unique(const UniqueArguments& unique) {
  const auto* const groups = reinterpret_cast<const uint32_t*>(unique.groups);
  const auto* const heads = reinterpret_cast<const uint32_t*>(unique.heads);
  const auto* const ranks = reinterpret_cast<const uint32_t*>(unique.ranks);
  auto* const indices = reinterpret_cast<int64_t*>(unique.dst_indices);
  auto* const counts = reinterpret_cast<int64_t*>(unique.dst_counts);
  auto* const inverse = reinterpret_cast<int64_t*>(unique.dst_inverse);
  const auto put = [&](int64_t to, int64_t place, int64_t count) {
    put_element(unique, to, place, count != 0);
    if (indices != nullptr) indices[to * unique.indices_stride] = place;
    if (counts != nullptr) counts[to * unique.counts_stride] = count;
  };
  const int64_t all = all_selected(unique.pieces);
  for (int64_t i = thread_in_grid(); i < unique.pieces.count; i += threads_in_grid()) {
    const uint32_t group = groups[i];
    const int64_t head = heads[group];
    const int64_t place = place_of_sorted(unique, head);
    const int64_t to = ranks != nullptr ? ranks[place] : group;
    if (inverse != nullptr) inverse[place_of_sorted(unique, i) * unique.inverse_stride] = to;
    if (i == head) put(to, place, heads[group + 1] - head);
    if (i >= all) put(i, 0, 0);
  }
}

}  // namespace tenon::provider::cuda

namespace kernels = tenon::provider::cuda;
using kernels::NonzeroArguments;
using kernels::OneHotArguments;
using kernels::PieceArguments;
using kernels::UniqueArguments;

TENON_KERNEL one_hot_1(TENON_ARGUMENT(OneHotArguments) hot) { kernels::one_hot<uint8_t>(hot); }
TENON_KERNEL one_hot_2(TENON_ARGUMENT(OneHotArguments) hot) { kernels::one_hot<uint16_t>(hot); }
TENON_KERNEL one_hot_4(TENON_ARGUMENT(OneHotArguments) hot) { kernels::one_hot<uint32_t>(hot); }
TENON_KERNEL one_hot_8(TENON_ARGUMENT(OneHotArguments) hot) { kernels::one_hot<uint64_t>(hot); }

TENON_TEAM_KERNEL(4) select_offset_block(TENON_ARGUMENT(PieceArguments) pieces) { kernels::add_up(pieces); }

TENON_TEAM_KERNEL(3) nonzero_count_block(TENON_ARGUMENT(NonzeroArguments) nonzero) {
  kernels::count_selected(nonzero.pieces, kernels::IsNonzero{nonzero});
}
TENON_TEAM_KERNEL(4) nonzero_write_block(TENON_ARGUMENT(NonzeroArguments) nonzero) { kernels::write_nonzero(nonzero); }

#define TENON_UNIQUE(bytes, Key)                                                                   \
  TENON_TEAM_KERNEL(4) unique_head_count_##bytes##_block(TENON_ARGUMENT(UniqueArguments) unique) { \
    kernels::count_selected(unique.pieces, kernels::IsHead<Key>(unique));                          \
  }                                                                                                \
  TENON_TEAM_KERNEL(4) unique_group_##bytes##_block(TENON_ARGUMENT(UniqueArguments) unique) {      \
    kernels::number_groups<Key>(unique);                                                           \
  }
TENON_UNIQUE(4, uint32_t)
TENON_UNIQUE(8, uint64_t)
TENON_TEAM_KERNEL(4) unique_rank_count_block(TENON_ARGUMENT(UniqueArguments) unique) {
  kernels::count_selected(unique.pieces, kernels::IsMarked{unique});
}
TENON_TEAM_KERNEL(4) unique_rank_block(TENON_ARGUMENT(UniqueArguments) unique) {
  kernels::number_selected(unique.pieces, kernels::IsMarked{unique}, [&](int64_t place, int64_t number, bool selected) {
    if (selected) reinterpret_cast<uint32_t*>(unique.ranks)[place] = static_cast<uint32_t>(number);
  });
}
TENON_KERNEL unique_write(TENON_ARGUMENT(UniqueArguments) unique) { kernels::write_unique(unique); }
