// unique: elements, or slices along an axis, become keys with positions. After sorting, equal ones are adjacent.
#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <numeric>
#include <utility>

#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/order/keys.h"
#include "providers/cpu/order/order.h"
#include "providers/cpu/order/radix.h"
#include "providers/cpu/order/run.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/simd/copy_bytes.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// One operand as a list of elements of 8 bytes. It has no base if it is absent.
struct List {
  int64_t* base = nullptr;
  int64_t stride = 0;

  explicit operator bool() const { return base != nullptr; }
  int64_t& operator[](int64_t i) const { return base[i * stride]; }
};

class UniquePrimitive final : public ep_primitive {
 public:
  UniquePrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        axis_(desc.attributes.unique.axis),
        order_(desc.attributes.unique.order),
        src_(find_operand(desc, EP_ROLE_SRC)),
        dtype_(desc.operands[0].dtype),
        size_(dtype_size(dtype_)),
        threads_(on.threads),
        level_(on.simd) {}

  // Two lists of entries of at most 16 bytes, the counts of their digits, two lists of positions, and copies
  // of slices and of the distinct ones.
  uint64_t workspace(const ep_shape* shapes) const override {
    const OperandShape src = source(shapes);
    const int64_t all = axes_of(src, ~0U, true).count();
    const int64_t n = axis_ < 0 ? all : src.dims[axis_];
    const int64_t copies = axis_ < 0 ? 0 : 2 * all * size_;
    return static_cast<uint64_t>(2 * n * 16 + radix_counts(n) * 8 + 2 * n * 8 + copies + 64);
  }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    with_key_type(dtype_, [&](auto type) {
      if (axis_ < 0 && is_line(launch) && (order_ == EP_UNIQUE_CONSECUTIVE || rises(type, launch))) {
        consecutive(type, launch);
      } else if (axis_ < 0) {
        elements(type, launch);
      } else {
        slices(type, launch);
      }
    });
    return EP_STATUS_OK;
  }

 private:
  OperandShape source(const ep_shape* shapes) const {
    return shape_of(desc_.operands[src_], shapes, static_cast<uint32_t>(src_));
  }
  List list(const ep_launch& launch, int32_t role) const {
    const int32_t number = find_operand(desc_, role);
    if (number < 0) return {};
    const OperandShape shape = shape_of(desc_.operands[number], launch.shapes, static_cast<uint32_t>(number));
    return {reinterpret_cast<int64_t*>(address_of(launch.operands[number])), shape.strides[0]};
  }

  // True if the elements of SRC and DST are contiguous.
  bool is_line(const ep_launch& launch) const {
    return axes_of(source(launch.shapes), ~0U, true).contiguous() &&
           shape_of(desc_.operands[0], launch.shapes, 0).strides[0] == 1;
  }

  // True if the elements of SRC ascend, so that equal ones are adjacent.
  template <class Type>
  bool rises(const Type& type, const ep_launch& launch) const {
    const int64_t n = axes_of(source(launch.shapes), ~0U, true).count();
    const auto* const from = reinterpret_cast<const typename Type::Bits*>(address_of(launch.operands[src_]));
    constexpr int64_t few = 4096;  // most unordered lists are detected here
    if (!run_of(type, from, std::min(n, few)).rises) return false;
    std::atomic<bool> all{true};
    parallel(threads_, n / 4, [&](int32_t part, int32_t parts) {
      const int64_t begin = n * part / parts, end = std::min(n * (part + 1) / parts + 1, n);
      if (all && !run_of(type, from + begin, end - begin).rises) all = false;
    });
    return all;
  }

  // True if an element begins a group after another one: -0 equals 0, and NaN equals nothing.
  template <class Type>
  static bool differs(const Type& type, typename Type::Bits one, typename Type::Bits next) {
    using U = typename Type::Bits;
    if constexpr (Type::mode != KeyMode::FLOAT) return one != next;
    if constexpr (sizeof(U) == 4) return std::bit_cast<float>(one) != std::bit_cast<float>(next);
    if constexpr (sizeof(U) == 8) return std::bit_cast<double>(one) != std::bit_cast<double>(next);
    const U key = type.key(next);
    return type.key(one) != key || type.is_nan_key(key);
  }

  // Works without keys and positions: counts the first elements of groups in each chunk, then writes them after those
  // of earlier chunks.
  template <class Type>
  void consecutive(const Type& type, const ep_launch& launch) const {
    using U = typename Type::Bits;
    const int64_t n = axes_of(source(launch.shapes), ~0U, true).count();
    const U* const from = reinterpret_cast<const U*>(address_of(launch.operands[src_]));
    U* const to = reinterpret_cast<U*>(address_of(launch.operands[0]));
    constexpr int64_t unit = 1024;
    const int64_t units = (n + unit - 1) / unit;
    auto* const firsts = reinterpret_cast<int64_t*>(address_of(launch.workspace));  // first group of each unit
    parallel(threads_, n / 2, [&](int32_t part, int32_t parts) {
      for (int64_t u = units * part / parts; u < units * (part + 1) / parts; ++u) {
        const int64_t begin = std::max<int64_t>(u * unit, 1);
        const auto more = static_cast<int32_t>(std::min(n, (u + 1) * unit) - begin);
        int32_t count = u == 0 ? 1 : 0;  // as wide as most elements, so that their vectors have equal lengths
        for (int32_t i = 0; i < more; ++i) {
          count += static_cast<int32_t>(differs(type, from[begin + i - 1], from[begin + i]));
        }
        firsts[u] = count;
      }
    });
    int64_t groups = 0;
    for (int64_t u = 0; u < units; ++u) groups += std::exchange(firsts[u], groups);
    const List indices = list(launch, EP_ROLE_DST_INDICES);
    const List inverse = list(launch, EP_ROLE_DST_INVERSE);
    const List sizes = list(launch, EP_ROLE_DST_COUNTS);
    parallel(threads_, n, [&](int32_t part, int32_t parts) {
      U elements[unit + 1];  // one more, because every element is written and may be overwritten
      int64_t places[unit + 1];
      for (int64_t u = units * part / parts; u < units * (part + 1) / parts; ++u) {
        const int64_t begin = u * unit, end = std::min(n, begin + unit);
        const bool has_places = indices || sizes;
        const int64_t here = (u + 1 < units ? firsts[u + 1] : groups) - firsts[u];
        int64_t count = 0;
        if (!has_places && !inverse) {
          if (here == end - begin) {  // all elements differ
            copy_bytes(to + firsts[u], from + begin, static_cast<size_t>(here) * sizeof(U));
            continue;
          }
          elements[0] = from[begin];
          count = static_cast<int64_t>(begin == 0 || differs(type, from[begin - 1], from[begin]));
          for (int64_t i = begin + 1; i < end; ++i) {
            elements[count] = from[i];
            count += static_cast<int64_t>(differs(type, from[i - 1], from[i]));
          }
          copy_bytes(to + firsts[u], elements, static_cast<size_t>(count) * sizeof(U));
          continue;
        }
        for (int64_t i = begin; i < end; ++i) {
          elements[count] = from[i];
          if (has_places) places[count] = i;
          count += static_cast<int64_t>(i == 0 || differs(type, from[i - 1], from[i]));
          if (inverse) inverse[i] = firsts[u] + count - 1;
        }
        copy_bytes(to + firsts[u], elements, static_cast<size_t>(count) * sizeof(U));
        for (int64_t g = 0; indices && g < count; ++g) indices[firsts[u] + g] = places[g];
        for (int64_t g = 0; sizes && g < count; ++g) sizes[firsts[u] + g] = places[g];
      }
    });
    for (int64_t g = 0; sizes && g < groups; ++g) sizes[g] = (g + 1 < groups ? sizes[g + 1] : n) - sizes[g];
    list(launch, EP_ROLE_DST_COUNT)[0] = groups;
    std::fill(to + groups, to + n, U{0});
    for (int64_t g = groups; indices && g < n; ++g) indices[g] = 0;
    for (int64_t g = groups; sizes && g < n; ++g) sizes[g] = 0;
  }

  template <class Type>
  void elements(const Type& type, const ep_launch& launch) const {
    using U = typename Type::Bits;
    using Make = EntryOf<U>;
    using Entry = typename Make::Type;
    const Axes axes = axes_of(source(launch.shapes), ~0U, true);
    const int64_t n = axes.count();
    const U* const from = reinterpret_cast<const U*>(address_of(launch.operands[src_]));
    char* const room = address_of(launch.workspace);
    auto* const entries = reinterpret_cast<Entry*>(room);
    auto* const others = entries + n;
    auto* const counts = reinterpret_cast<int64_t*>(room + 2 * n * 16);
    int64_t* const firsts = counts + radix_counts(n);
    int64_t* const numbers = firsts + n;
    const int64_t length = axes.dims[axes.rank - 1];
    const int64_t stride = axes.strides[axes.rank - 1];
    for (int64_t line = 0; line < n; line += length) {
      const U* const row = from + axes.offset(line);
      for (int64_t i = 0; i < length; ++i) entries[line + i] = Make::make(type.key(row[i * stride]), line + i);
    }
    const Entry* sorted = entries;
    if (order_ != EP_UNIQUE_CONSECUTIVE) sorted = radix_sort(entries, others, n, 8 * size_, threads_, counts);
    const List inverse = list(launch, EP_ROLE_DST_INVERSE);
    const List sizes = list(launch, EP_ROLE_DST_COUNTS);
    // Groups in sorted order: the first position of each, and the number of groups.
    int64_t groups = 0;
    const bool renumbers = order_ == EP_UNIQUE_FIRST;
    List group_of = inverse;
    for (int64_t i = 0; i < n; ++i) {
      const U key = Make::key(sorted[i]);
      const bool starts = i == 0 || key != Make::key(sorted[i - 1]) || type.is_nan_key(key);
      if (starts) firsts[groups++] = Make::position(sorted[i]);
      if (group_of) group_of[Make::position(sorted[i])] = groups - 1;
      if (!sizes) continue;
      if (starts) sizes[groups - 1] = 0;
      ++sizes[groups - 1];
    }
    if (renumbers) renumber(firsts, groups, numbers, entries, n, inverse, sizes);
    finish(launch, firsts, groups, n);
    // Writes the elements from their first positions.
    const OperandShape dst = shape_of(desc_.operands[0], launch.shapes, 0);
    U* const to = reinterpret_cast<U*>(address_of(launch.operands[0]));
    for (int64_t i = 0; i < groups; ++i) to[i * dst.strides[0]] = from[axes.offset(firsts[i])];
    for (int64_t i = groups; i < n; ++i) to[i * dst.strides[0]] = 0;
  }

  // Sorts groups by their first positions. `room` is unused memory.
  static void renumber(int64_t* firsts, int64_t groups, int64_t* numbers, void* room, int64_t n, const List& inverse,
                       const List& sizes) {
    std::fill_n(numbers, n, int64_t{-1});
    for (int64_t g = 0; g < groups; ++g) numbers[firsts[g]] = g;  // by position
    auto* const new_numbers = static_cast<int64_t*>(room);
    auto* const old_sizes = new_numbers + groups;
    if (sizes) {
      for (int64_t g = 0; g < groups; ++g) old_sizes[g] = sizes[g];
    }
    int64_t next = 0;
    for (int64_t i = 0; i < n; ++i) {
      if (numbers[i] < 0) continue;
      if (sizes) sizes[next] = old_sizes[numbers[i]];
      new_numbers[numbers[i]] = next;
      firsts[next++] = i;
    }
    if (!inverse) return;
    for (int64_t i = 0; i < n; ++i) inverse[i] = new_numbers[inverse[i]];
  }

  // Writes DST_COUNT and DST_INDICES, and zeros after the lists.
  void finish(const ep_launch& launch, const int64_t* firsts, int64_t groups, int64_t n) const {
    list(launch, EP_ROLE_DST_COUNT)[0] = groups;
    const List indices = list(launch, EP_ROLE_DST_INDICES);
    const List sizes = list(launch, EP_ROLE_DST_COUNTS);
    if (indices) {
      for (int64_t i = 0; i < n; ++i) indices[i] = i < groups ? firsts[i] : 0;
    }
    for (int64_t i = groups; sizes && i < n; ++i) sizes[i] = 0;
  }

  // The order of two rows by the keys of their elements: negative, 0 or positive.
  template <class Type>
  static int32_t compare(const Type& type, const typename Type::Bits* one, const typename Type::Bits* other,
                         int64_t n) {
    using U = typename Type::Bits;
    constexpr int64_t block = 256 / sizeof(U);
    for (int64_t i = 0; i < n;) {
      const int64_t end = std::min(i + block, n);
      if (std::memcmp(one + i, other + i, static_cast<size_t>(end - i) * sizeof(U)) == 0) {
        i = end;
        continue;
      }
      for (; i < end; ++i) {
        const U x = type.key(one[i]), y = type.key(other[i]);
        if (x != y) return x < y ? -1 : 1;
      }
    }
    return 0;
  }

  // True if two rows differ: -0 equals 0, and NaN equals nothing.
  template <class Type>
  static bool rows_differ(const Type& type, const typename Type::Bits* one, const typename Type::Bits* next,
                          int64_t n) {
    if constexpr (Type::mode != KeyMode::FLOAT)
      return std::memcmp(one, next, static_cast<size_t>(n) * sizeof(typename Type::Bits)) != 0;
    constexpr int64_t block = 64;
    for (int64_t i = 0; i < n; i += block) {
      unsigned found = 0;
      for (int64_t k = i; k < std::min(i + block, n); ++k) found |= differs(type, one[k], next[k]) ? 1U : 0U;
      if (found != 0) return true;
    }
    return false;
  }

  // The slices of an operand along the axis as rows of elements, in order.
  StridedCopy as_rows(const OperandShape& shape, bool to_rows) const {
    int64_t dims[EP_MAX_RANK], strides[EP_MAX_RANK];
    const auto rank = static_cast<size_t>(shape.rank);
    for (int32_t k = 0; k < shape.rank; ++k) {
      const int32_t from = k == 0 ? axis_ : k <= axis_ ? k - 1 : k;
      dims[k] = shape.dims[from];
      strides[k] = shape.strides[from];
    }
    return to_rows ? to_dense(size_, {dims, rank}, {strides, rank}) : from_dense(size_, {dims, rank}, {strides, rank});
  }
  static bool is_dense(const StridedCopy& copy) {
    return std::equal(copy.dst_strides, copy.dst_strides + copy.rank, copy.src_strides);
  }

  // Rows that are not in place are copied. The distinct rows are collected in place, or in a copy of the result.
  template <class Type>
  void slices(const Type& type, const ep_launch& launch) const {
    using U = typename Type::Bits;
    const OperandShape src = source(launch.shapes), dst = shape_of(desc_.operands[0], launch.shapes, 0);
    const int64_t n = src.dims[axis_], all = axes_of(src, ~0U, true).count(), width = all / n;
    char* const room = address_of(launch.workspace);
    auto* const sorted = reinterpret_cast<int64_t*>(room);
    auto* const counts = reinterpret_cast<int64_t*>(room + 2 * n * 16);
    int64_t* const firsts = counts + radix_counts(n);
    int64_t* const numbers = firsts + n;
    U* const copies = reinterpret_cast<U*>(numbers + n);
    const StridedCopy reads = as_rows(src, true), writes = as_rows(dst, false);
    const char* const given = address_of(launch.operands[src_]);
    char* const result = address_of(launch.operands[0]);
    if (!is_dense(reads)) strided_copy(reads, reinterpret_cast<char*>(copies), given, level_, threads_);
    const U* const rows = is_dense(reads) ? reinterpret_cast<const U*>(given) : copies;
    std::iota(sorted, sorted + n, int64_t{0});
    if (order_ != EP_UNIQUE_CONSECUTIVE) {
      std::sort(sorted, sorted + n, [&](int64_t a, int64_t b) {
        const int32_t order = compare(type, rows + a * width, rows + b * width, width);
        return order != 0 ? order < 0 : a < b;
      });
    }
    const List inverse = list(launch, EP_ROLE_DST_INVERSE);
    const List sizes = list(launch, EP_ROLE_DST_COUNTS);
    int64_t groups = 0;
    for (int64_t i = 0; i < n; ++i) {
      const bool starts = i == 0 || rows_differ(type, rows + sorted[i - 1] * width, rows + sorted[i] * width, width);
      if (starts) firsts[groups++] = sorted[i];
      if (inverse) inverse[sorted[i]] = groups - 1;
      if (!sizes) continue;
      if (starts) sizes[groups - 1] = 0;
      ++sizes[groups - 1];
    }
    if (order_ == EP_UNIQUE_FIRST) renumber(firsts, groups, numbers, sorted + n, n, inverse, sizes);
    finish(launch, firsts, groups, n);
    U* const distinct = is_dense(writes) ? reinterpret_cast<U*>(result) : copies + all;
    const auto row_bytes = static_cast<size_t>(width) * sizeof(U);
    for (int64_t i = 0; i < groups; ++i) copy_bytes(distinct + i * width, rows + firsts[i] * width, row_bytes);
    std::fill(distinct + groups * width, distinct + all, U{0});
    if (!is_dense(writes)) strided_copy(writes, result, reinterpret_cast<const char*>(distinct), level_, threads_);
  }

  ep_primitive_desc desc_;
  int32_t axis_;
  int32_t order_;
  int32_t src_;
  int32_t dtype_;
  int32_t size_;
  int32_t threads_;
  SimdLevel level_;
};

}  // namespace

Refusal Unique::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_unique_attributes& at = desc.attributes.unique;
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  if (src == nullptr || desc.operands[0].role != EP_ROLE_DST || operand(desc, EP_ROLE_DST_COUNT) == nullptr)
    return Refusal::because("its operands are not SRC, DST, DST_COUNT and more");
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    const ep_operand_desc& one = desc.operands[i];
    const bool is_list = one.role == EP_ROLE_DST_COUNT || one.role == EP_ROLE_DST_INDICES ||
                         one.role == EP_ROLE_DST_INVERSE || one.role == EP_ROLE_DST_COUNTS;
    if (!is_list && one.role != EP_ROLE_DST && one.role != EP_ROLE_SRC)
      return Refusal::because("an operand of role %d", one.role);
    if (is_list && (one.dtype != EP_DTYPE_i64 || one.rank != 1))
      return Refusal::because("a list of %s of rank %d", dtype_name(one.dtype), one.rank);
  }
  if (!has_keys(src->dtype) || desc.operands[0].dtype != src->dtype)
    return Refusal::because("a source of %s", dtype_name(src->dtype));
  if (at.order < EP_UNIQUE_SORTED || at.order > EP_UNIQUE_CONSECUTIVE) return Refusal::because("order %d", at.order);
  if (at.axis < -1 || at.axis >= src->rank) return Refusal::because("axis %d of rank %d", at.axis, src->rank);
  if (desc.operands[0].rank != (at.axis < 0 ? 1 : src->rank))
    return Refusal::because("a result of rank %d", desc.operands[0].rank);
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  // A position of up to 32 bits shares 64 bits with a key.
  info.greatest_elements = UINT64_C(0xffffffff);
  return {};
}

Refusal Unique::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<UniquePrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
