// sort_tile_<bytes of a key>_<tile>_block sorts tiles in shared memory. Long rows are sorted digit by digit, least
// significant first, with three launches per digit: sort_count_block counts the digits of each piece, sort_offset_warp
// sums the counts, and sort_scatter_block moves elements to their places.
#include "providers/cuda/kernels/keys.h"
#include "providers/cuda/kernels/team.h"

namespace tenon::provider::cuda {

constexpr int sort_warps = row_block / row_warp;
static_assert(digit_values == row_block, "thread d of a block serves digit d");

// The offsets at which a row begins in each operand.
struct RowOffsets {
  int64_t src;
  int64_t dst;
  int64_t dst_places;
};
TENON_ON_GPU RowOffsets row_offsets(const RowSet& rows, int64_t row) {
  RowOffsets at{0, 0, 0};
  for (int32_t axis = rows.rank - 1; axis >= 0; --axis) {
    const int64_t next = axis == 0 ? 0 : quotient(row, rows.dims[axis]);
    const int64_t i = row - next * rows.dims[axis];
    at.src += i * rows.strides[0][axis];
    at.dst += i * rows.strides[1][axis];
    at.dst_places += i * rows.strides[2][axis];
    row = next;
  }
  return at;
}

// Writes the element of `key` as element `i` of a sorted row.
template <class Key>
TENON_ON_GPU void put_result(const SortArguments& sort, const KeyForm<Key>& form, const RowOffsets& row, int64_t i,
                             Key key, uint32_t place) {
  if (sort.dst_places != 0) reinterpret_cast<int64_t*>(sort.dst_places)[row.dst_places + i * sort.strides[2]] = place;
  if (sort.dst == 0) return;
  Key bits;
  if (!form.element(key, &bits)) bits = bits_at<Key>(sort.src, row.src + place * sort.strides[0], sort.form.size);
  put_bits<Key>(sort.dst, row.dst + i * sort.strides[1], sort.form.size, bits);
}

template <class Key>
TENON_ON_GPU Key key_at(const SortArguments& sort, const KeyForm<Key>& form, int64_t row, int64_t src, int64_t i) {
  if (sort.keys != 0) return reinterpret_cast<const Key*>(sort.keys)[row * sort.length + i];
  return form.key(bits_at<Key>(sort.src, src + i * sort.strides[0], sort.form.size));
}
TENON_ON_GPU uint32_t place_at(const SortArguments& sort, int64_t row, int64_t i) {
  return sort.keys != 0 ? reinterpret_cast<const uint32_t*>(sort.places)[row * sort.length + i]
                        : static_cast<uint32_t>(i);
}

// The position in a tile of item j of this thread. The items of a warp are contiguous.
template <int items>
TENON_ON_GPU uint32_t position_of(int j) {
  const auto thread = static_cast<uint32_t>(thread_in_block());
  return thread / row_warp * (items * row_warp) + static_cast<uint32_t>(j) * row_warp + thread % row_warp;
}

template <class Key, class Place, int items>
struct SortRoom {
  uint32_t counts[sort_warps][digit_values];
  Key keys[items * row_block];
  Place places[items * row_block];
};

struct SumOfCounts {
  TENON_ON_GPU uint32_t operator()(uint32_t x, uint32_t y) const { return x + y; }
};

// The elements of a tile whose digit this thread handles.
struct DigitRun {
  uint32_t start;
  uint32_t count;
};

// Sorts a tile by its digits, stably.
template <class Key, class Place, int items>
TENON_ON_GPU DigitRun sort_by(const uint32_t* digits, Key* keys, Place* places, SortRoom<Key, Place, items>* room) {
  const auto thread = static_cast<uint32_t>(thread_in_block());
  uint32_t* const of_warp = room->counts[thread / row_warp];
  uint32_t ranks[items];
  rank_in_warp<items>(digits, of_warp, ranks);
  block_barrier();
  DigitRun run{0, 0};
  uint32_t before[sort_warps];
  TENON_UNROLL
  for (int warp = 0; warp < sort_warps; ++warp) {
    before[warp] = run.count;
    run.count += room->counts[warp][thread];
  }
  uint32_t total;
  BlockTeam<uint32_t> team;
  run.start = team.before(run.count, 0U, SumOfCounts(), &total);
  TENON_UNROLL
  for (int warp = 0; warp < sort_warps; ++warp) room->counts[warp][thread] = run.start + before[warp];
  block_barrier();
  TENON_UNROLL
  for (int j = 0; j < items; ++j) {
    const uint32_t to = of_warp[digits[j]] + ranks[j];
    room->keys[to] = keys[j];
    room->places[to] = places[j];
  }
  block_barrier();
  TENON_UNROLL
  for (int j = 0; j < items; ++j) {
    keys[j] = room->keys[position_of<items>(j)];
    places[j] = room->places[position_of<items>(j)];
  }
  return run;
}

template <class Key>
TENON_ON_GPU uint32_t digit_of(Key key, int32_t shift) {
  return static_cast<uint32_t>(key >> shift) & (digit_values - 1);
}

// Elements beyond the end of a tile have the greatest digits and come last, so they stay there.
template <class Key, int items>
TENON_ON_GPU void sort_tiles(const SortArguments& sort) {
  using Room = SortRoom<Key, uint16_t, items>;
  TENON_BLOCK_SHARED(Room, room);
  TENON_BLOCK_SHARED(RowOffsets, offsets[sort_most_rows]);
  constexpr int64_t tile_length = int64_t{items} * row_block;
  const KeyForm<Key> form(sort.form);
  const bool whole = sort.tile_rows > 1;
  const int64_t tiles =
      whole ? quotient(sort.rows.count + sort.tile_rows - 1, int64_t{sort.tile_rows}) : sort.rows.count * sort.pieces;
  TENON_ROLLED
  for (int64_t tile = block_in_grid(); tile < tiles; tile += blocks_in_grid()) {
    const int64_t row = whole ? tile * sort.tile_rows : quotient(tile, sort.pieces);
    const int64_t first = whole ? 0 : (tile - row * sort.pieces) * tile_length;
    const int64_t rows = sort.rows.count - row < sort.tile_rows ? sort.rows.count - row : sort.tile_rows;
    const auto length = static_cast<uint32_t>(sort.length - first < tile_length ? sort.length - first : tile_length);
    const uint32_t valid = length * static_cast<uint32_t>(rows);
    block_barrier();  // wait until the offsets of the previous tile are read
    if (thread_in_block() < rows) offsets[thread_in_block()] = row_offsets(sort.rows, row + thread_in_block());
    block_barrier();
    Key keys[items];
    uint16_t from[items];
    TENON_UNROLL
    for (int j = 0; j < items; ++j) {
      const uint32_t position = position_of<items>(j);
      from[j] = static_cast<uint16_t>(position);
      keys[j] = static_cast<Key>(~Key{0});
      if (position >= valid) continue;
      const uint32_t r = whole ? position / length : 0;
      keys[j] = key_at<Key>(sort, form, row + r, offsets[r].src, first + (position - r * length));
    }
    uint32_t digits[items];
    TENON_ROLLED
    for (int32_t pass = 0; pass < sort.passes; ++pass) {
      TENON_UNROLL
      for (int j = 0; j < items; ++j) digits[j] = digit_of(keys[j], pass * digit_bits);
      sort_by<Key, uint16_t, items>(digits, keys, from, &room);
    }
    if (whole) {
      TENON_UNROLL
      for (int j = 0; j < items; ++j) digits[j] = from[j] < valid ? from[j] / length : digit_values - 1;
      sort_by<Key, uint16_t, items>(digits, keys, from, &room);
    }
    TENON_UNROLL
    for (int j = 0; j < items; ++j) {
      const uint32_t position = position_of<items>(j);
      if (position >= valid) continue;
      const uint32_t r = whole ? position / length : 0;
      const int64_t i = position - r * length;
      if (i >= sort.kept) continue;
      const uint32_t place = place_at(sort, row + r, first + (from[j] - r * length));
      if (sort.next_keys == 0) {
        put_result<Key>(sort, form, offsets[r], i, keys[j], place);
        continue;
      }
      const int64_t piece = whole ? 0 : tile - row * sort.pieces;
      const int64_t to = (row + r) * sort.next_length + piece * sort.kept + i;
      reinterpret_cast<Key*>(sort.next_keys)[to] = keys[j];
      reinterpret_cast<uint32_t*>(sort.next_places)[to] = place;
    }
  }
}

// A piece of a row.
struct Piece {
  int64_t row;
  int64_t number;
  int64_t begin;
  int64_t end;
  TENON_ON_GPU Piece(const SortArguments& sort, int64_t job) {
    row = quotient(job, sort.pieces);
    number = job - row * sort.pieces;
    begin = number * sort.piece_length;
    end = sort.length - begin < sort.piece_length ? sort.length : begin + sort.piece_length;
  }
};

// The index in the counts for digit `digit` of a piece.
TENON_ON_GPU int64_t count_index(const SortArguments& sort, const Piece& piece, int64_t digit) {
  return (piece.row * digit_values + digit) * sort.pieces + piece.number;
}

template <class Key, int items>
TENON_ON_GPU void sort_count(const SortArguments& sort) {
  TENON_BLOCK_SHARED(uint32_t, counts[sort_warps][digit_values]);
  const KeyForm<Key> form(sort.form);
  const int64_t thread = thread_in_block();
  uint32_t* const of_warp = counts[thread / row_warp];
  TENON_ROLLED
  for (int64_t job = block_in_grid(); job < sort.rows.count * sort.pieces; job += blocks_in_grid()) {
    const Piece piece(sort, job);
    const int64_t src = sort.keys != 0 ? 0 : row_offsets(sort.rows, piece.row).src;
    for (int warp = 0; warp < sort_warps; ++warp) counts[warp][thread] = 0;
    block_barrier();
    TENON_ROLLED
    for (int64_t tile = piece.begin; tile < piece.end; tile += items * row_block) {
      Key keys[items];
      TENON_UNROLL
      for (int j = 0; j < items; ++j) {
        const int64_t i = tile + position_of<items>(j);
        if (i < piece.end) keys[j] = key_at<Key>(sort, form, piece.row, src, i);
      }
      TENON_UNROLL
      for (int j = 0; j < items; ++j) {
        if (tile + position_of<items>(j) < piece.end) add_to(&of_warp[digit_of(keys[j], sort.shift)], 1U);
      }
    }
    block_barrier();
    uint32_t sum = 0;
    for (int warp = 0; warp < sort_warps; ++warp) sum += counts[warp][thread];
    reinterpret_cast<uint32_t*>(sort.counts)[count_index(sort, piece, thread)] = sum;
    block_barrier();
  }
}

// Replaces the count of each digit and piece by the sum over earlier pieces.
TENON_ON_GPU void sort_offset(const SortArguments& sort) {
  WarpTeam<uint32_t> team;
  TENON_ROLLED
  for (int64_t job = team.number(); job < sort.rows.count * digit_values; job += team.count()) {
    auto* const counts = reinterpret_cast<uint32_t*>(sort.counts) + job * sort.pieces;
    uint32_t carry = 0;
    TENON_ROLLED
    for (int64_t tile = 0; tile < sort.pieces; tile += row_warp * map_chunk) {
      const int64_t first = tile + team.rank() * map_chunk;
      uint32_t x[map_chunk] = {};
      TENON_UNROLL
      for (int i = 0; i < map_chunk; ++i) {
        if (first + i < sort.pieces) x[i] = counts[first + i];
      }
      uint32_t total;
      uint32_t before = carry + team.before(x[0] + x[1] + x[2] + x[3], 0U, SumOfCounts(), &total);
      carry += total;
      TENON_UNROLL
      for (int i = 0; i < map_chunk; ++i) {
        if (first + i < sort.pieces) counts[first + i] = before;
        before += x[i];
      }
    }
    if (team.rank() == 0) reinterpret_cast<uint32_t*>(sort.totals)[job] = carry;
  }
}

template <class Key, int items>
TENON_ON_GPU void sort_scatter(const SortArguments& sort) {
  using Room = SortRoom<Key, uint32_t, items>;
  TENON_BLOCK_SHARED(Room, room);
  TENON_BLOCK_SHARED(uint32_t, moves[digit_values]);  // difference between the position in the row and the position in
                                                      // the sorted tile
  const KeyForm<Key> form(sort.form);
  const int64_t thread = thread_in_block();
  TENON_ROLLED
  for (int64_t job = block_in_grid(); job < sort.rows.count * sort.pieces; job += blocks_in_grid()) {
    const Piece piece(sort, job);
    const RowOffsets offsets = row_offsets(sort.rows, piece.row);
    // The position of the next element with this thread's digit.
    const uint32_t all = reinterpret_cast<const uint32_t*>(sort.totals)[piece.row * digit_values + thread];
    uint32_t total;
    BlockTeam<uint32_t> team;
    uint32_t next = team.before(all, 0U, SumOfCounts(), &total);
    next += reinterpret_cast<const uint32_t*>(sort.counts)[count_index(sort, piece, thread)];
    TENON_ROLLED
    for (int64_t tile = piece.begin; tile < piece.end; tile += items * row_block) {
      const auto valid =
          static_cast<uint32_t>(piece.end - tile < items * row_block ? piece.end - tile : items * row_block);
      Key keys[items];
      uint32_t places[items];
      uint32_t digits[items];
      TENON_UNROLL
      for (int j = 0; j < items; ++j) {
        const uint32_t position = position_of<items>(j);
        keys[j] = static_cast<Key>(~Key{0});
        places[j] = 0;
        if (position >= valid) continue;
        keys[j] = key_at<Key>(sort, form, piece.row, offsets.src, tile + position);
        places[j] = place_at(sort, piece.row, tile + position);
      }
      TENON_UNROLL
      for (int j = 0; j < items; ++j) digits[j] = digit_of(keys[j], sort.shift);
      const DigitRun run = sort_by<Key, uint32_t, items>(digits, keys, places, &room);
      moves[thread] = next - run.start;
      next += run.count;
      block_barrier();
      TENON_UNROLL
      for (int j = 0; j < items; ++j) {
        const uint32_t position = position_of<items>(j);
        if (position >= valid) continue;
        const int64_t to = position + moves[digit_of(keys[j], sort.shift)];
        if (sort.next_keys != 0) {
          reinterpret_cast<Key*>(sort.next_keys)[piece.row * sort.length + to] = keys[j];
          reinterpret_cast<uint32_t*>(sort.next_places)[piece.row * sort.length + to] = places[j];
        } else if (to < sort.kept) {
          put_result<Key>(sort, form, offsets, to, keys[j], places[j]);
        }
      }
    }
  }
}

}  // namespace tenon::provider::cuda

namespace kernels = tenon::provider::cuda;
using kernels::SortArguments;

#define TENON_SORT(bytes, Key)                                                                \
  TENON_TEAM_KERNEL(4) sort_tile_##bytes##_short_block(TENON_ARGUMENT(SortArguments) sort) {  \
    kernels::sort_tiles<Key, kernels::sort_items_short>(sort);                                \
  }                                                                                           \
  TENON_TEAM_KERNEL(3) sort_tile_##bytes##_middle_block(TENON_ARGUMENT(SortArguments) sort) { \
    kernels::sort_tiles<Key, kernels::sort_items_middle>(sort);                               \
  }                                                                                           \
  TENON_TEAM_KERNEL(4) sort_count_##bytes##_block(TENON_ARGUMENT(SortArguments) sort) {       \
    kernels::sort_count<Key, kernels::sort_items_middle>(sort);                               \
  }                                                                                           \
  TENON_TEAM_KERNEL(3) sort_scatter_##bytes##_block(TENON_ARGUMENT(SortArguments) sort) {     \
    kernels::sort_scatter<Key, kernels::sort_items_middle>(sort);                             \
  }
TENON_SORT(4, uint32_t)
TENON_SORT(8, uint64_t)
TENON_TEAM_KERNEL(2) sort_tile_4_long_block(TENON_ARGUMENT(SortArguments) sort) {
  kernels::sort_tiles<uint32_t, kernels::sort_items_long>(sort);
}
TENON_TEAM_KERNEL(3) sort_offset_warp(TENON_ARGUMENT(SortArguments) sort) { kernels::sort_offset(sort); }
