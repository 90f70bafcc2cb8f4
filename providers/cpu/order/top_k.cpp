// top_k: passes over a line with a list of candidates, which is reduced to k whenever it is full. A sample of the line
// gives a bound for the first candidates. After a reduction, an element is a candidate only if it precedes the k-th
// one. So most elements are only compared.
#include <algorithm>
#include <cmath>

#include "providers/cpu/order/few.h"
#include "providers/cpu/order/keys.h"
#include "providers/cpu/order/lines.h"
#include "providers/cpu/order/order.h"
#include "providers/cpu/order/radix.h"
#include "providers/cpu/order/run.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t spare = 2048;           // room for candidates beyond k
constexpr int64_t block = 64;             // elements compared at a time
constexpr int64_t part_length = 1 << 16;  // least part of a line that several threads process
constexpr int64_t most_sampled = 512;     // elements sampled per line
constexpr int64_t most_found = 4;         // up to this k, elements of a short line are found in one pass each
constexpr int64_t fewest_found = 2;       // the same if all elements of the line can be compared with each other
constexpr int64_t longest_found = 1024;   // the longest line whose elements are found so
constexpr int64_t most_inserted = 16;     // up to this many candidates are kept in order by insertion

inline bool before(uint64_t x, uint64_t y) { return x < y; }
inline bool before(const WideEntry& x, const WideEntry& y) {
  return x.key != y.key ? x.key < y.key : x.position < y.position;
}

// The candidates of one line. The first k of them are kept.
template <class Type>
struct Candidates {
  using U = typename Type::Bits;
  using Make = EntryOf<U>;
  using Entry = typename Make::Type;

  Entry* list;
  int64_t k;
  int64_t room;
  int64_t count = 0;
  bool keeps_all = false;  // k is so large that sorting everything is cheaper than choosing
  bool is_full = false;    // true after a reduction
  bool none_left = false;  // no key is less than the k-th one
  static constexpr U all_keys = static_cast<U>(~U{0});
  U most = all_keys;  // the greatest key of a candidate

  void add(Entry entry) {
    if (k <= most_inserted) return insert(entry);
    list[count++] = entry;
    if (count == room && !keeps_all) cut();
  }
  // Lists that are already in order, such as equal elements, need no selection.
  void cut() {
    if (count <= k || keeps_all) return;
    const auto comes_before = [](const Entry& x, const Entry& y) { return before(x, y); };
    if (!std::is_sorted(list, list + count, comes_before))
      std::nth_element(list, list + k - 1, list + count, comes_before);
    count = k;
    note_last();
  }
  // Processes elements [begin, end) of a line, with an empty list.
  void look(const Type& type, const U* from, int64_t stride, int64_t begin, int64_t end, U flip) {
    if (stride == 1) return look([&](int64_t i) { return static_cast<U>(type.key(from[i]) ^ flip); }, begin, end);
    look([&](int64_t i) { return static_cast<U>(type.key(from[i * stride]) ^ flip); }, begin, end);
  }

 private:
  // Inserts an entry after entries with the same key, because those were there before.
  void insert(Entry entry) {
    const U key = Make::key(entry);
    if (is_full && (none_left || key > most)) return;
    int64_t at = is_full ? k - 1 : count++;
    for (; at > 0 && key < Make::key(list[at - 1]); --at) list[at] = list[at - 1];
    list[at] = entry;
    if (count == k) note_last();
  }
  // A later element with the key of the k-th one comes after it, so it is not a candidate.
  void note_last() {
    is_full = true;
    const U last = Make::key(list[k - 1]);
    none_left = last == 0;
    most = static_cast<U>(last - 1);
  }
  template <class KeyAt>
  void look(const KeyAt& key_at, int64_t begin, int64_t end) {
    if (!keeps_all && k > most_inserted) most = guess(key_at, begin, end);
    scan(key_at, begin, end);
    if (is_full || count >= k || most == all_keys) return;
    count = 0;  // the sample did not represent the line
    most = all_keys;
    scan(key_at, begin, end);
  }
  // Returns a key that very likely at least k elements do not exceed: from its rank in a sample, plus three standard
  // deviations.
  template <class KeyAt>
  U guess(const KeyAt& key_at, int64_t begin, int64_t end) const {
    const int64_t n = end - begin;
    const int64_t sampled = std::min(n / 8, most_sampled);
    const double wanted =
        static_cast<double>(k) * static_cast<double>(sampled) / static_cast<double>(std::max<int64_t>(n, 1));
    const auto place = static_cast<int64_t>(wanted + 3 * std::sqrt(wanted)) + 1;
    if (sampled < 32 || place > sampled / 3) return all_keys;
    U keys[most_sampled];
    for (int64_t i = 0; i < sampled; ++i) keys[i] = key_at(begin + i * n / sampled);
    std::nth_element(keys, keys + place - 1, keys + sampled);
    return keys[place - 1];
  }
  template <class KeyAt>
  void scan(const KeyAt& key_at, int64_t begin, int64_t end) {
    int64_t i = begin;
    U keys[block];
    const auto any_candidate = [&] {
      unsigned any = 0;
      for (int64_t j = 0; j < block; ++j) {
        keys[j] = key_at(i + j);
        any |= keys[j] <= most ? 1U : 0U;
      }
      return any != 0;
    };
    for (; i + block <= end && !none_left; i += block) {
      if (!any_candidate()) continue;
      for (int64_t j = 0; j < block && !none_left; ++j) {
        if (keys[j] <= most) add(Make::make(keys[j], i + j));
      }
    }
    for (; i < end && !none_left; ++i) {
      const U key = key_at(i);
      if (key <= most) add(Make::make(key, i));
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
        places_(places_function(on.simd)),
        least_(least_function(on.simd)),
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
  // Several threads process parts of one line.
  int64_t most_parts() const { return threads_; }
  static int64_t room_of(int64_t k, int64_t length) {
    return sorts_all(k, length) ? length : std::min(2 * k + std::clamp<int64_t>(length / 8, 64, spare), length);
  }
  static bool sorts_all(int64_t k, int64_t length) { return 8 * k > length && length > 256; }
  // The bytes of the list, of a copy for sorting, and of the counts for sorting.
  int64_t room_bytes(int64_t room) const { return (2 * room * entry_ + radix_counts(room) * 8 + 63) / 64 * 64; }

  template <class Type>
  void run(const Type& type, const ep_launch& launch, const Lines& src) const {
    using Entry = typename Candidates<Type>::Entry;
    using U = typename Type::Bits;
    const Lines values(desc_, launch, values_, axis_);
    const Lines positions(desc_, launch, positions_, axis_);
    const int64_t k = values ? values.length : positions.length;
    if (k == 0) return;
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
          if constexpr (sizeof(U) <= 4) {
            if (src.length <= few_keys) {
              if (k <= fewest_found && write_found(type, src, values, positions, k, line, flip)) continue;
              write_few(type, src, values, positions, k, line, flip);
              continue;
            }
          }
          if (write_run(type, src, values, positions, k, line)) continue;
          if (write_found(type, src, values, positions, k, line, flip)) continue;
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
  void write_few(const Type& type, const Lines& src, const Lines& values, const Lines& positions, int64_t k,
                 int64_t line, typename Type::Bits flip) const {
    using U = typename Type::Bits;
    const U* const from = reinterpret_cast<const U*>(src.line(line));
    uint32_t keys[few_keys], places[few_keys], first[few_keys];
    for (int64_t i = 0; i < src.length; ++i) keys[i] = static_cast<U>(type.key(from[i * src.stride]) ^ flip);
    places_(keys, src.length, places);
    for (int64_t i = 0; i < src.length; ++i) first[places[i]] = static_cast<uint32_t>(i);
    auto* const to = positions ? reinterpret_cast<int64_t*>(positions.line(line)) : nullptr;
    U* const out = values ? reinterpret_cast<U*>(values.line(line)) : nullptr;
    for (int64_t i = 0; i < k; ++i) {
      if (to != nullptr) to[i * positions.stride] = first[i];
      if (out != nullptr) out[i * values.stride] = from[first[i] * src.stride];
    }
  }

  // Finds the first k elements of a short line one after the other. Returns false if k or the line is too long, or if
  // the greatest key is among them, because that key marks found elements.
  template <class Type>
  bool write_found(const Type& type, const Lines& src, const Lines& values, const Lines& positions, int64_t k,
                   int64_t line, typename Type::Bits flip) const {
    using U = typename Type::Bits;
    if (sizeof(U) > 4 || k > most_found || src.length > longest_found) return false;
    constexpr uint32_t mark = ~uint32_t{0};
    const U* const from = reinterpret_cast<const U*>(src.line(line));
    uint32_t keys[longest_found];
    for (int64_t i = 0; i < src.length; ++i)
      keys[i] = static_cast<uint32_t>(static_cast<U>(type.key(from[i * src.stride]) ^ flip));
    auto* const to = positions ? reinterpret_cast<int64_t*>(positions.line(line)) : nullptr;
    U* const out = values ? reinterpret_cast<U*>(values.line(line)) : nullptr;
    for (int64_t i = 0; i < k; ++i) {
      const int64_t place = least_(keys, src.length);
      if (keys[place] == mark) return false;
      keys[place] = mark;
      if (to != nullptr) to[i * positions.stride] = place;
      if (out != nullptr) out[i * values.stride] = from[place * src.stride];
    }
    return true;
  }

  // Writes the first k elements of a line that is in ascending or descending order. Returns false for other lines.
  template <class Type>
  bool write_run(const Type& type, const Lines& src, const Lines& values, const Lines& positions, int64_t k,
                 int64_t line) const {
    using U = typename Type::Bits;
    if (src.stride != 1) return false;
    const U* const from = reinterpret_cast<const U*>(src.line(line));
    const Run run = run_of(type, from, src.length);
    if (!run.rises && !run.falls) return false;
    auto* const to = positions ? reinterpret_cast<int64_t*>(positions.line(line)) : nullptr;
    U* const out = values ? reinterpret_cast<U*>(values.line(line)) : nullptr;
    int64_t count = 0;
    const auto write = [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end && count < k; ++i, ++count) {
        if (to != nullptr) to[count * positions.stride] = i;
        if (out != nullptr) out[count * values.stride] = from[i];
      }
    };
    if (largest_ ? run.falls : run.rises) {
      write(0, k);
      return true;
    }
    // Reads from the end; equal elements stay in the order of their positions.
    int64_t end = src.length;
    while (end > 0) {
      int64_t begin = end - 1;
      while (begin > 0 && type.key(from[begin - 1]) == type.key(from[begin])) --begin;
      write(begin, end);
      end = count < k ? begin : 0;
    }
    return true;
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
      const auto comes_before = [](const Entry& x, const Entry& y) { return before(x, y); };
      if (!std::is_sorted(sorted, sorted + k, comes_before)) std::sort(sorted, sorted + k, comes_before);
    } else {
      // Nothing was removed, so the candidates are still ordered by position, as a stable sort needs.
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
  PlacesFunction places_;
  LeastFunction least_;
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
