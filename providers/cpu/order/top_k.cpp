// top_k: a line goes by a list of candidates, which are cut down to k whenever the list is full. After the first cut an
// element is a candidate only if it comes before the k-th one, so most elements of a line are only looked at. A short
// list is in order from the start, and each candidate is put into its place.
#include <algorithm>

#include "providers/cpu/order/keys.h"
#include "providers/cpu/order/lines.h"
#include "providers/cpu/order/order.h"
#include "providers/cpu/order/radix.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t in_order = 64;          // the greatest k of a list that is kept in order
constexpr int64_t spare = 2048;           // candidates beyond k that a list has room for
constexpr int64_t block = 64;             // elements that are looked at together
constexpr int64_t part_length = 1 << 16;  // at least, of a line that several threads look at

inline bool before(uint64_t x, uint64_t y) { return x < y; }
inline bool before(const WideEntry& x, const WideEntry& y) {
  return x.key != y.key ? x.key < y.key : x.position < y.position;
}

// The candidates of one line, of which the first k are kept.
template <class Type>
struct Candidates {
  using U = typename Type::Bits;
  using Make = EntryOf<U>;
  using Entry = typename Make::Type;

  Entry* list;
  int64_t k;
  int64_t room;
  int64_t count = 0;
  bool keeps_all = false;  // k is so great that sorting all costs less than choosing
  bool is_full = false;
  U limit = static_cast<U>(~U{0});  // is_full: a key must be less than this one

  void add(Entry entry) {
    if (k <= in_order && !keeps_all) return insert(entry);
    list[count++] = entry;
    if (count == room && !keeps_all) cut();
  }
  void insert(Entry entry) {
    if (count == k && (k == 0 || !before(entry, list[k - 1]))) return;
    int64_t place = count < k ? count++ : k - 1;
    for (; place > 0 && before(entry, list[place - 1]); --place) list[place] = list[place - 1];
    list[place] = entry;
    is_full = count == k;
    if (is_full) limit = Make::key(list[k - 1]);
  }
  void cut() {
    if (count <= k || keeps_all) return;
    std::nth_element(list, list + k - 1, list + count, [](const Entry& x, const Entry& y) { return before(x, y); });
    count = k;
    is_full = true;
    limit = Make::key(list[k - 1]);
  }
  // Looks at elements begin to end of a line.
  void look(const Type& type, const U* from, int64_t stride, int64_t begin, int64_t end, U flip) {
    int64_t i = begin;
    for (; i < end && !is_full; ++i) add(Make::make(static_cast<U>(type.key(from[i * stride]) ^ flip), i));
    U keys[block];
    for (; i + block <= end; i += block) {
      unsigned any = 0;
      if (stride == 1) {
        for (int64_t j = 0; j < block; ++j) {
          keys[j] = static_cast<U>(type.key(from[i + j]) ^ flip);
          any |= keys[j] < limit ? 1U : 0U;
        }
      } else {
        for (int64_t j = 0; j < block; ++j) {
          keys[j] = static_cast<U>(type.key(from[(i + j) * stride]) ^ flip);
          any |= keys[j] < limit ? 1U : 0U;
        }
      }
      if (any == 0) continue;
      for (int64_t j = 0; j < block; ++j) {
        if (keys[j] < limit) add(Make::make(keys[j], i + j));
      }
    }
    for (; i < end; ++i) {
      const U key = static_cast<U>(type.key(from[i * stride]) ^ flip);
      if (key < limit) add(Make::make(key, i));
    }
  }
};

class TopKPrimitive final : public ep_primitive {
 public:
  TopKPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        axis_(desc.attributes.top_k.axis),
        largest_(desc.attributes.top_k.largest != 0),
        src_(find_operand(desc, EP_ROLE_SRC)),
        values_(find_operand(desc, EP_ROLE_DST)),
        positions_(find_operand(desc, EP_ROLE_DST_INDICES)),
        dtype_(desc.operands[src_].dtype),
        entry_(dtype_size(dtype_) == 8 ? 16 : 8),
        threads_(on.threads) {}

  uint64_t workspace(const ep_shape* shapes) const override {
    const OperandShape src = shape_of(desc_.operands[src_], shapes, static_cast<uint32_t>(src_));
    const OperandShape dst = shape_of(desc_.operands[0], shapes, 0);
    return static_cast<uint64_t>(most_parts() * room_bytes(room_of(dst.dims[axis_], src.dims[axis_])));
  }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    const Lines src(desc_, launch, src_, axis_);
    if (src.length > INT64_C(0xffffffff) && entry_ == 8) {
      return fail_text(host, error, EP_STATUS_UNSUPPORTED, "top_k: a line has more than 4294967295 elements.");
    }
    with_key_type(dtype_, [&](auto type) { run(type, launch, src); });
    return EP_STATUS_OK;
  }

 private:
  // Several threads look at parts of one line.
  int64_t most_parts() const { return threads_; }
  static int64_t room_of(int64_t k, int64_t length) {
    return sorts_all(k, length) ? length : std::min(2 * k + std::clamp<int64_t>(length / 8, 64, spare), length);
  }
  static bool sorts_all(int64_t k, int64_t length) { return 8 * k > length && length > 256; }
  // The list, and as much again with counts for sorting it.
  int64_t room_bytes(int64_t room) const { return (2 * room * entry_ + radix_counts(room) * 8 + 63) / 64 * 64; }

  template <class Type>
  void run(const Type& type, const ep_launch& launch, const Lines& src) const {
    using Entry = typename Candidates<Type>::Entry;
    using U = typename Type::Bits;
    const Lines values(desc_, launch, values_, axis_);
    const Lines positions(desc_, launch, positions_, axis_);
    const int64_t k = values ? values.length : positions.length;
    const int64_t room = room_of(k, src.length);
    const int64_t lines = src.outer.count();
    const int64_t bytes = room_bytes(room);
    char* const workspace = address_of(launch.workspace);
    const U flip = largest_ ? static_cast<U>(~U{0}) : U{0};
    const auto candidates = [&](int64_t number) {
      return Candidates<Type>{reinterpret_cast<Entry*>(workspace + number * bytes), k, room, 0,
                              sorts_all(k, src.length)};
    };
    const auto finish = [&](Candidates<Type>& found, int64_t line) {
      found.cut();
      write(found, src, values, positions, line);
    };
    const int64_t parts_of_line = std::min<int64_t>(most_parts(), src.length / std::max(part_length, 4 * k));
    if (lines >= threads_ || parts_of_line < 2) {
      parallel(threads_, lines * src.length, [&](int32_t part, int32_t parts) {
        for (int64_t line = lines * part / parts; line < lines * (part + 1) / parts; ++line) {
          Candidates<Type> found = candidates(runner());
          found.look(type, reinterpret_cast<const U*>(src.line(line)), src.stride, 0, src.length, flip);
          finish(found, line);
        }
      });
      return;
    }
    for (int64_t line = 0; line < lines; ++line) {
      int64_t counts[64] = {};
      const int64_t cut = std::min<int64_t>(parts_of_line, 64);
      parallel(threads_, src.length, [&](int32_t part, int32_t parts) {
        for (int64_t p = cut * part / parts; p < cut * (part + 1) / parts; ++p) {
          Candidates<Type> found = candidates(p);
          found.look(type, reinterpret_cast<const U*>(src.line(line)), src.stride, src.length * p / cut,
                     src.length * (p + 1) / cut, flip);
          found.cut();
          counts[p] = found.count;
        }
      });
      Candidates<Type> all = candidates(0);
      all.count = counts[0];
      for (int64_t p = 1; p < cut; ++p) {
        const Candidates<Type> other = candidates(p);
        for (int64_t i = 0; i < counts[p]; ++i) all.add(other.list[i]);
      }
      finish(all, line);
    }
  }

  template <class Type>
  void write(const Candidates<Type>& found, const Lines& src, const Lines& values, const Lines& positions,
             int64_t line) const {
    using U = typename Type::Bits;
    using Make = EntryOf<U>;
    using Entry = typename Make::Type;
    const int64_t k = found.k;
    Entry* sorted = found.list;
    if (found.is_full || (k <= 256 && !found.keeps_all)) {
      std::sort(sorted, sorted + k, [](const Entry& x, const Entry& y) { return before(x, y); });
    } else {
      // Nothing was cut, so the candidates are still in the order of their positions, as a stable sort wants them.
      auto* const others = sorted + found.room;
      sorted =
          radix_sort(sorted, others, found.count, 8 * sizeof(U), 1, reinterpret_cast<int64_t*>(others + found.room));
    }
    const U* const from = reinterpret_cast<const U*>(src.line(line));
    if (positions) {
      auto* const to = reinterpret_cast<int64_t*>(positions.line(line));
      for (int64_t i = 0; i < k; ++i) to[i * positions.stride] = Make::position(sorted[i]);
    }
    if (!values) return;
    U* const to = reinterpret_cast<U*>(values.line(line));
    for (int64_t i = 0; i < k; ++i) to[i * values.stride] = from[Make::position(sorted[i]) * src.stride];
  }

  ep_primitive_desc desc_;
  int32_t axis_;
  bool largest_;
  int32_t src_, values_, positions_;
  int32_t dtype_;
  int64_t entry_;  // bytes
  int32_t threads_;
};

}  // namespace

Refusal TopK::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  return why_not_ordered(desc, desc.attributes.top_k.axis, info);
}

Refusal TopK::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<TopKPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
