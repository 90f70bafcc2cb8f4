// sort: turns each line into keys with positions and sorts them by digits. Lines in ascending or descending order are
// only copied. Lines with gaps between their elements are sorted in copies, some neighbours at a time.
#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <utility>

#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/order/few.h"
#include "providers/cpu/order/halves.h"
#include "providers/cpu/order/keys.h"
#include "providers/cpu/order/lines.h"
#include "providers/cpu/order/order.h"
#include "providers/cpu/order/radix.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// The workspace of one line: two lists of entries, and the counts of their digits.
struct Room {
  char* entries;
  char* others;
  int64_t* counts;

  static int64_t bytes(int64_t length, int64_t entry) { return 2 * length * entry + radix_counts(length) * 8; }
  Room(char* base, int64_t length, int64_t entry)
      : entries(base), others(base + length * entry), counts(reinterpret_cast<int64_t*>(base + 2 * length * entry)) {}
};

class SortPrimitive final : public ep_primitive {
 public:
  SortPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        axis_(desc.attributes.sort.axis),
        descending_(desc.attributes.sort.descending != 0),
        src_(find_operand(desc, EP_ROLE_SRC)),
        values_(find_operand(desc, EP_ROLE_DST)),
        positions_(find_operand(desc, EP_ROLE_DST_INDICES)),
        dtype_(desc.operands[src_].dtype),
        entry_(dtype_size(dtype_) == 8 ? 16 : 8),
        places_(places_function(on.simd)),
        threads_(on.threads) {}

  uint64_t workspace(const ep_shape* shapes) const override {
    const OperandShape src = shape_of(desc_.operands[src_], shapes, static_cast<uint32_t>(src_));
    const int64_t length = src.dims[axis_];
    const int64_t lines = axes_of(src, 1U << axis_, false).count();
    const int64_t rooms = by_lines(lines) ? threads_ : 1;
    return static_cast<uint64_t>(rooms * (room_bytes(length) + copied_bytes(length, lines_together(shapes))));
  }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    const Lines src(desc_, launch, src_, axis_);
    const Lines values(desc_, launch, values_, axis_);
    const Lines positions(desc_, launch, positions_, axis_);
    if (src.length > INT64_C(0xffffffff) && entry_ == 8) {
      return fail_text(host, error, EP_STATUS_UNSUPPORTED, "sort: a line has more than 4294967295 elements.");
    }
    char* const workspace = address_of(launch.workspace);
    if (src.length > 1 && src.stride == 0) {
      write_equal(launch, src.length, reinterpret_cast<int64_t*>(workspace));
      return EP_STATUS_OK;
    }
    with_key_type(dtype_, [&](auto type) {
      const int64_t lines = src.outer.count();
      if (!by_lines(lines)) {
        for (int64_t line = 0; line < lines; ++line) sort_line(type, src, values, positions, line, workspace, threads_);
        return;
      }
      parallel(threads_, lines * src.length * 10, [&](int32_t part, int32_t parts) {
        const int64_t together = lines_together(launch.shapes);
        char* const room = workspace + runner() * (room_bytes(src.length) + copied_bytes(src.length, together));
        const int64_t begin = lines * part / parts, end = lines * (part + 1) / parts;
        if (together > 1) return sort_copies(type, src, values, positions, begin, end, room, together);
        if (src.length <= shortest) return sort_short_lines(type, src, values, positions, begin, end);
        for (int64_t line = begin; line < end; ++line) sort_line(type, src, values, positions, line, room, 1);
      });
    });
    return EP_STATUS_OK;
  }

 private:
  static constexpr int64_t worth_parts = 8192;  // elements from which on several threads read or write faster than one

  static constexpr int64_t shortest = 8;  // elements of a line whose pairs are all compared without vectors

  // Writes lines whose elements are all the same one.
  void write_equal(const ep_launch& launch, int64_t length, int64_t* steps) const {
    const auto shape = [&](int32_t i) { return shape_of(desc_.operands[i], launch.shapes, static_cast<uint32_t>(i)); };
    const auto copy = [&](int32_t to, const OperandShape& src, const void* from) {
      copy_operand(dtype_size(desc_.operands[to].dtype), shape(to), address_of(launch.operands[to]), src,
                   static_cast<const char*>(from), device->simd, threads_);
    };
    if (values_ >= 0) copy(values_, shape(src_), address_of(launch.operands[src_]));
    if (positions_ < 0) return;
    for (int64_t i = 0; i < length; ++i) steps[i] = i;
    const OperandShape given = shape(src_);
    int64_t strides[EP_MAX_RANK] = {};
    strides[axis_] = 1;
    copy(positions_, {given.dims, strides, given.rank}, steps);
  }

  // The number of lines that are copied before they are sorted, and afterwards: neighbours of lines with gaps between
  // their elements. 1 if lines are sorted where they are.
  int64_t lines_together(const ep_shape* shapes) const {
    constexpr int64_t copied_elements = 16384, most_lines = 64, fewest_lines = 4;
    bool gaps = false;
    for (const int32_t i : {src_, values_, positions_}) {
      if (i >= 0) gaps |= shape_of(desc_.operands[i], shapes, static_cast<uint32_t>(i)).strides[axis_] != 1;
    }
    const OperandShape src = shape_of(desc_.operands[src_], shapes, static_cast<uint32_t>(src_));
    const Axes outer = axes_of(src, 1U << axis_, false);
    const int64_t length = src.dims[axis_];
    if (!gaps || outer.rank == 0 || length <= shortest || !by_lines(outer.count())) return 1;
    const int64_t lines = std::min({outer.dims[outer.rank - 1], copied_elements / length, most_lines});
    return lines < fewest_lines ? 1 : lines;
  }
  // The bytes of copies of `lines` lines: of the source, the values and the positions.
  int64_t copied_bytes(int64_t length, int64_t lines) const {
    const int64_t line = length * (2 * dtype_size(dtype_) + static_cast<int64_t>(sizeof(int64_t)));
    return lines > 1 ? (lines * line + 63) / 64 * 64 : 0;
  }

  // Sorts lines [begin, end), some at a time in copies without gaps.
  template <class Type>
  void sort_copies(const Type& type, const Lines& src, const Lines& values, const Lines& positions, int64_t begin,
                   int64_t end, char* room, int64_t together) const {
    const int64_t n = src.length;
    const int32_t last = src.outer.rank - 1;
    const int64_t row = src.outer.dims[last];
    char* const copies = room + room_bytes(n);
    const auto copied = [&](const Lines& lines, char* base) {
      Lines copy;
      if (!lines) return copy;
      copy.base = base;
      copy.outer.add(together, n);
      copy.length = n;
      copy.stride = 1;
      copy.size = lines.size;
      return copy;
    };
    const Lines sorted_positions = copied(positions, copies);
    const Lines given = copied(src, copies + together * n * static_cast<int64_t>(sizeof(int64_t)));
    const Lines sorted = copied(values, given.base + together * n * src.size);
    for (int64_t line = begin; line < end;) {
      const int64_t dims[] = {std::min({together, end - line, row - line % row}), n};
      const auto strides = [&](const Lines& lines) {
        return std::array<int64_t, 2>{lines.outer.strides[last], lines.stride};
      };
      strided_copy(to_dense(static_cast<int32_t>(src.size), dims, strides(src)), given.base, src.line(line),
                   device->simd, 1);
      for (int64_t k = 0; k < dims[0]; ++k) sort_line(type, given, sorted, sorted_positions, k, room, 1);
      for (const auto& [lines, copy] : {std::pair(&values, &sorted), std::pair(&positions, &sorted_positions)}) {
        if (!*lines) continue;
        strided_copy(from_dense(static_cast<int32_t>(lines->size), dims, strides(*lines)), lines->line(line),
                     copy->base, device->simd, 1);
      }
      line += dims[0];
    }
  }

  // True if each thread sorts lines of its own.
  bool by_lines(int64_t lines) const { return lines >= threads_; }
  int64_t room_bytes(int64_t length) const { return (Room::bytes(length, entry_) + 63) / 64 * 64; }

  template <class Type>
  void sort_line(const Type& type, const Lines& src, const Lines& values, const Lines& positions, int64_t number,
                 char* workspace, int32_t threads) const {
    using U = typename Type::Bits;
    using Make = EntryOf<U>;
    using Entry = typename Make::Type;
    const int64_t n = src.length;
    const U* const from = reinterpret_cast<const U*>(src.line(number));
    const U flip = descending_ ? static_cast<U>(~U{0}) : U{0};
    if constexpr (sizeof(U) <= 4) {
      if (n <= few_keys) return sort_few(type, src, values, positions, number, flip);
    }
    const Room room(workspace, n, entry_);
    bool shares = false;
    if (!positions && sizeof(U) <= 4) {
      auto* const keys = reinterpret_cast<uint32_t*>(room.entries);
      for (int64_t i = 0; i < n; ++i) {
        const U bits = from[i * src.stride];
        keys[i] = static_cast<U>(type.key(bits) ^ flip);
        shares |= type.shares_key(bits);
      }
      if (!shares) {
        const uint32_t* const sorted =
            radix_sort(keys, reinterpret_cast<uint32_t*>(room.others), n, 8 * sizeof(U), threads, room.counts);
        U* const to = reinterpret_cast<U*>(values.line(number));
        for (int64_t i = 0; i < n; ++i) to[i * values.stride] = type.bits(static_cast<U>(sorted[i] ^ flip));
        return;
      }
    }
    if constexpr (Type::mode != KeyMode::FLOAT && sizeof(U) >= 4) {
      const uint64_t* const few = sort_by_differences(type, from, src.stride, n, flip, room, threads);
      if (few != nullptr) {
        const auto position = [&](int64_t i) { return EntryOf<uint32_t>::position(few[i]); };
        return write(from, src, values, positions, number, position, threads);
      }
    }
    if constexpr (sizeof(U) == 8) {
      // Positions are consecutive, so their entries are sorted in place.
      Room halves_room = room;
      if (positions && positions.stride == 1) halves_room.entries = positions.line(number);
      const uint64_t* const halves =
          src.stride == 1
              ? sort_by_halves(type, from, std::integral_constant<int64_t, 1>(), n, flip, halves_room, threads)
              : sort_by_halves(type, from, src.stride, n, flip, halves_room, threads);
      if (halves != nullptr) {
        const auto position = [&](int64_t i) { return EntryOf<uint32_t>::position(halves[i]); };
        return write(from, src, values, positions, number, position, threads);
      }
    }
    auto* const entries = reinterpret_cast<Entry*>(room.entries);
    const int64_t cut = threads > 1 ? threads : 1;
    std::atomic<bool> any_shares{false};
    for_parts(threads, n, cut, [&](int64_t begin, int64_t end) {
      bool here = false;
      for (int64_t i = begin; i < end; ++i) {
        const U bits = from[i * src.stride];
        entries[i] = Make::make(static_cast<U>(type.key(bits) ^ flip), i);
        here |= type.shares_key(bits);
      }
      if (here) any_shares = true;
    });
    Entry* sorted = entries;
    const auto key_at = [entries](int64_t i) { return Make::key(entries[i]); };
    if (!rises(key_at, n)) {
      if (falls(key_at, n)) {
        std::reverse(entries, entries + n);
      } else {
        sorted = radix_sort(entries, reinterpret_cast<Entry*>(room.others), n, 8 * sizeof(U), threads, room.counts);
      }
    }
    for_parts(threads, n, cut, [&](int64_t begin, int64_t end) {
      if (positions) {
        auto* const to = reinterpret_cast<int64_t*>(positions.line(number));
        for (int64_t i = begin; i < end; ++i) to[i * positions.stride] = Make::position(sorted[i]);
      }
      if (!values) return;
      U* const to = reinterpret_cast<U*>(values.line(number));
      if (any_shares) {
        for (int64_t i = begin; i < end; ++i) to[i * values.stride] = from[Make::position(sorted[i]) * src.stride];
      } else {
        for (int64_t i = begin; i < end; ++i) {
          to[i * values.stride] = type.bits(static_cast<U>(Make::key(sorted[i]) ^ flip));
        }
      }
    });
  }

  // Writes the elements at position(0), position(1), ...
  template <class U, class Position>
  static void write(const U* from, const Lines& src, const Lines& values, const Lines& positions, int64_t number,
                    const Position& position, int32_t threads) {
    for_parts(threads, src.length, threads, [&](int64_t begin, int64_t end) {
      if (positions) {
        auto* const to = reinterpret_cast<int64_t*>(positions.line(number));
        for (int64_t i = begin; i < end; ++i) to[i * positions.stride] = position(i);
      }
      if (!values) return;
      U* const to = reinterpret_cast<U*>(values.line(number));
      for (int64_t i = begin; i < end; ++i) to[i * values.stride] = from[position(i) * src.stride];
    });
  }

  // Sorts integers that lie close together by their differences from the least one, which have few digits. Returns NULL
  // for others.
  template <class Type>
  static const uint64_t* sort_by_differences(const Type& type, const typename Type::Bits* from, int64_t stride,
                                             int64_t n, typename Type::Bits flip, const Room& room, int32_t threads) {
    using U = typename Type::Bits;
    using Make = EntryOf<uint32_t>;
    constexpr int32_t most_bits = 24;
    if (n > INT64_C(0xffffffff)) return nullptr;
    U least = static_cast<U>(~U{0}), greatest = 0;
    const auto key_at = [=](int64_t i) { return static_cast<U>(type.key(from[i * stride]) ^ flip); };
    for (int64_t i = 0; i < n; ++i) {
      least = std::min(least, key_at(i));
      greatest = std::max(greatest, key_at(i));
    }
    const auto bits = static_cast<int32_t>(std::bit_width(static_cast<U>(greatest - least)));
    if (bits > most_bits) return nullptr;
    auto* const entries = reinterpret_cast<uint64_t*>(room.entries);
    for (int64_t i = 0; i < n; ++i) entries[i] = Make::make(static_cast<uint32_t>(key_at(i) - least), i);
    if (rises(key_at, n)) return entries;
    return radix_sort(entries, reinterpret_cast<uint64_t*>(room.others), n, bits, threads, room.counts);
  }

  // Sorts long keys by their first halves with positions, which halves the moved data. Equal halves are then ordered by
  // the whole keys. Returns NULL if the first halves do not differ well.
  template <class Type, class Stride>
  static const uint64_t* sort_by_halves(const Type& type, const uint64_t* from, Stride stride, int64_t n, uint64_t flip,
                                        const Room& room, int32_t threads) {
    if (n <= few_keys || n > INT64_C(0xffffffff)) return nullptr;
    using Make = EntryOf<uint32_t>;
    const auto key_at = [=](int64_t i) { return type.key(from[i * stride]) ^ flip; };
    const auto entry_at = [=](int64_t i) { return Make::make(static_cast<uint32_t>(key_at(i) >> 32), i); };
    const uint64_t first = key_at(0);
    std::atomic<uint64_t> differing{0};
    for_parts(threads, n, threads, [&](int64_t begin, int64_t end) {
      uint64_t here = 0;
      for (int64_t i = begin; i < end; ++i) here |= key_at(i) ^ first;
      differing |= here;
    });
    if (std::popcount(differing >> 32) < 16) return nullptr;
    auto* const sorted = reinterpret_cast<uint64_t*>(room.entries);
    if (rises(key_at, n)) {
      for (int64_t i = 0; i < n; ++i) sorted[i] = entry_at(i);
      return sorted;
    }
    if (falls(key_at, n)) {
      for (int64_t i = 0; i < n; ++i) sorted[i] = entry_at(n - 1 - i);
      return sorted;
    }
    sort_halves(entry_at, n, std::countl_zero(differing.load()), reinterpret_cast<uint64_t*>(room.others), sorted,
                threads);
    const auto less = [&](uint64_t a, uint64_t b) {
      if (Make::key(a) != Make::key(b)) return Make::key(a) < Make::key(b);
      return key_at(Make::position(a)) < key_at(Make::position(b));
    };
    return sort_by_inserting(sorted, n, less, threads) ? sorted : nullptr;
  }

  // Finishes the order of nearly sorted entries: each thread sorts a part, then the boundaries between parts are
  // sorted. Returns false if too many moves are needed.
  template <class Less>
  static bool sort_by_inserting(uint64_t* entries, int64_t n, const Less& less, int32_t threads) {
    const auto insert = [&](int64_t begin, int64_t i) {
      const uint64_t entry = entries[i];
      int64_t at = i;
      for (; at > begin && less(entry, entries[at - 1]); --at) entries[at] = entries[at - 1];
      entries[at] = entry;
      return i - at;
    };
    const int64_t cut = n < worth_parts ? 1 : threads;
    std::atomic<bool> fits{true};
    const auto sort_part = [&](int64_t part) {
      const int64_t begin = n * part / cut, end = n * (part + 1) / cut;
      int64_t moves = 2 * (end - begin);
      for (int64_t i = begin + 1; i < end && moves >= 0; ++i) {
        if (less(entries[i], entries[i - 1])) [[unlikely]]
          moves -= insert(begin, i);
      }
      if (moves < 0) fits = false;
    };
    if (cut == 1) {
      sort_part(0);
    } else {
      parallel(threads, n * 2, [&](int32_t part, int32_t parts) {
        for (int64_t p = cut * part / parts; p < cut * (part + 1) / parts; ++p) sort_part(p);
      });
    }
    int64_t moves = 2 * n;
    for (int64_t part = 1; part < cut && fits; ++part) {
      for (int64_t i = n * part / cut; i < n && less(entries[i], entries[i - 1]) && moves >= 0; ++i)
        moves -= insert(0, i);
    }
    return fits && moves >= 0;
  }

  // Sorts lines [begin, end). The place of an element is the number of elements before it.
  template <class Type>
  void sort_short_lines(const Type& type, const Lines& src, const Lines& values, const Lines& positions, int64_t begin,
                        int64_t end) const {
    using U = typename Type::Bits;
    const int64_t n = src.length;
    const U flip = descending_ ? static_cast<U>(~U{0}) : U{0};
    const int32_t last = src.outer.rank - 1;
    const int64_t row = last < 0 ? 1 : src.outer.dims[last];
    const auto step = [&](const Lines& lines) { return lines && last >= 0 ? lines.outer.strides[last] : 0; };
    const int64_t src_step = step(src), values_step = step(values), positions_step = step(positions);
    for (int64_t line = begin; line < end;) {
      const int64_t count = std::min(end - line, row - line % row);
      const U* from = reinterpret_cast<const U*>(src.line(line));
      U* to = values ? reinterpret_cast<U*>(values.line(line)) : nullptr;
      int64_t* at = positions ? reinterpret_cast<int64_t*>(positions.line(line)) : nullptr;
      for (int64_t k = 0; k < count; ++k, from += src_step) {
        U elements[shortest], keys[shortest];
        int64_t places[shortest] = {};
        for (int64_t i = 0; i < n; ++i) {
          elements[i] = from[i * src.stride];
          keys[i] = static_cast<U>(type.key(elements[i]) ^ flip);
          for (int64_t j = 0; j < i; ++j) {
            const bool before = keys[i] < keys[j];
            places[j] += before ? 1 : 0;
            places[i] += before ? 0 : 1;
          }
        }
        for (int64_t i = 0; i < (at != nullptr ? n : 0); ++i) at[places[i] * positions.stride] = i;
        for (int64_t i = 0; i < (to != nullptr ? n : 0); ++i) to[places[i] * values.stride] = elements[i];
        if (at != nullptr) at += positions_step;
        if (to != nullptr) to += values_step;
      }
      line += count;
    }
  }

  template <class Type>
  void sort_few(const Type& type, const Lines& src, const Lines& values, const Lines& positions, int64_t number,
                typename Type::Bits flip) const {
    using U = typename Type::Bits;
    const int64_t n = src.length;
    const U* const from = reinterpret_cast<const U*>(src.line(number));
    uint32_t keys[few_keys], places[few_keys];
    for (int64_t i = 0; i < n; ++i) keys[i] = static_cast<U>(type.key(from[i * src.stride]) ^ flip);
    places_(keys, n, places);
    if (positions) {
      auto* const to = reinterpret_cast<int64_t*>(positions.line(number));
      for (int64_t i = 0; i < n; ++i) to[places[i] * positions.stride] = i;
    }
    if (!values) return;
    U* const to = reinterpret_cast<U*>(values.line(number));
    for (int64_t i = 0; i < n; ++i) to[places[i] * values.stride] = from[i * src.stride];
  }

  // Calls body(begin, end) for parts of [0, n).
  template <class Body>
  static void for_parts(int32_t threads, int64_t n, int64_t cut, const Body& body) {
    if (cut == 1 || n < worth_parts) return body(int64_t{0}, n);
    parallel(threads, n * 2, [&](int32_t part, int32_t parts) { body(n * part / parts, n * (part + 1) / parts); });
  }

  // True if the keys ascend, where equal keys are allowed.
  template <class KeyAt>
  static bool rises(const KeyAt& key_at, int64_t n) {
    for (int64_t i = 1; i < n; ++i) {
      if (key_at(i) < key_at(i - 1)) return false;
    }
    return true;
  }
  // True if the keys ascend strictly.
  template <class KeyAt>
  static bool falls(const KeyAt& key_at, int64_t n) {
    for (int64_t i = 1; i < n; ++i) {
      if (key_at(i) >= key_at(i - 1)) return false;
    }
    return true;
  }

  ep_primitive_desc desc_;
  int32_t axis_;
  bool descending_;
  int32_t src_, values_, positions_;
  int32_t dtype_;
  int64_t entry_;  // bytes
  PlacesFunction places_;
  int32_t threads_;
};

}  // namespace

Refusal why_not_ordered(const ep_primitive_desc& desc, int32_t axis, ep_support_info& info) {
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* values = operand(desc, EP_ROLE_DST);
  const ep_operand_desc* positions = operand(desc, EP_ROLE_DST_INDICES);
  const int32_t outputs = (values != nullptr ? 1 : 0) + (positions != nullptr ? 1 : 0);
  if (src == nullptr || outputs == 0 || desc.operand_count != static_cast<uint32_t>(outputs) + 1)
    return Refusal::because("its operands are not SRC and DST or DST_INDICES");
  if (!has_keys(src->dtype) || (values != nullptr && values->dtype != src->dtype))
    return Refusal::because("a source of %s", dtype_name(src->dtype));
  if (positions != nullptr && positions->dtype != EP_DTYPE_i64)
    return Refusal::because("positions of %s", dtype_name(positions->dtype));
  if (axis < 0 || axis >= src->rank) return Refusal::because("axis %d of rank %d", axis, src->rank);
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Sort::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  return why_not_ordered(desc, desc.attributes.sort.axis, info);
}

Refusal Sort::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<SortPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
