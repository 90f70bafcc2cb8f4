// any and all of bool. Truth values are bytes and can be combined in any order, so a row, or a group of rows, is one
// loop over bytes.
#include <algorithm>
#include <bit>
#include <cstring>

#include "providers/cpu/reduction/reduction.h"
#include "providers/cpu/reduction/split.h"
#include "providers/cpu/rows/row_primitive.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t most_values = 1024;  // results that a thread computes at a time
constexpr int64_t piece_bytes = 65536;
constexpr int64_t most_pieces = 16;
constexpr int64_t most_few = 8;  // up to this many results, threads share the elements of a result

// The byte that decides a reduction. `any` is true if a byte is set; `all` is false if a byte is not set.
template <bool kAll>
uint8_t decides(uint8_t x) {
  return kAll ? x == 0 : x != 0;
}

template <bool kAll>
class ReduceBytes final : public ep_primitive {
 public:
  explicit ReduceBytes(const ep_primitive_desc& desc) : desc_(desc), mask_(desc.attributes.reduce.axes) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const OperandShape dst = shape_of(desc_.operands[0], launch.shapes, 0);
    const OperandShape src = shape_of(desc_.operands[1], launch.shapes, 1);
    Split split = {axes_of(dst, mask_, false), axes_of(src, mask_, false), axes_of(src, mask_, true)};
    split.fold();
    if (split.kept_src.rank == 0) {
      split.kept_src.add(1, 1);
      split.kept_dst.add(1, 1);
    }
    const auto* from = reinterpret_cast<const uint8_t*>(address_of(launch.operands[1]));
    auto* to = reinterpret_cast<uint8_t*>(address_of(launch.operands[0]));
    const int64_t outputs = split.kept_src.count(), n = split.reduced.count();
    const int64_t pieces = outputs >= most_few ? 1 : std::clamp<int64_t>(outputs * n / piece_bytes, 1, most_pieces);
    const int64_t step = split.kept_dst.strides[split.kept_dst.rank - 1];
    const auto store = [&](int64_t first, int64_t count, const uint8_t* found) {
      uint8_t* at = to + split.kept_dst.offset(first);
      const auto value = [&](int64_t k) -> uint8_t { return (found[k] != 0) != kAll ? 1 : 0; };
      if (step == 1) {
        for (int64_t k = 0; k < count; ++k) at[k] = value(k);
      } else {
        for (int64_t k = 0; k < count; ++k) at[k * step] = value(k);
      }
    };
    if (pieces == 1) {
      parallel(device->threads, outputs * n / 16, [&](int32_t part, int32_t parts) {
        results(split, from, outputs * part / parts, outputs * (part + 1) / parts, 0, n, store);
      });
      return EP_STATUS_OK;
    }
    uint8_t partial[most_pieces][most_few] = {};
    parallel(device->threads, outputs * n / 16, [&](int32_t part, int32_t parts) {
      for (int64_t piece = pieces * part / parts; piece < pieces * (part + 1) / parts; ++piece) {
        results(split, from, 0, outputs, n * piece / pieces, n * (piece + 1) / pieces,
                [&](int64_t first, int64_t count, const uint8_t* found) {
                  std::copy_n(found, count, partial[piece] + first);
                });
      }
    });
    for (int64_t i = 0; i < outputs; ++i) {
      for (int64_t piece = 1; piece < pieces; ++piece) partial[0][i] |= partial[piece][i];
      store(i, 1, partial[0] + i);
    }
    return EP_STATUS_OK;
  }

 private:
  // Calls store(first, count, found) for results [begin, end), over elements [first, last).
  template <class Store>
  static void results(const Split& split, const uint8_t* from, int64_t begin, int64_t end, int64_t first, int64_t last,
                      const Store& store) {
    uint8_t found[most_values];
    const int32_t inner = split.kept_src.rank - 1;
    const int64_t line = split.kept_src.dims[inner], step = split.kept_src.strides[inner];
    for (int64_t i = begin; i < end;) {
      const int64_t n = std::min({end - i, line - i % line, most_values});
      look(split.reduced, from + split.kept_src.offset(i), step, n, first, last, found);
      store(i, n, found);
      i += n;
    }
  }

  // found[k] = true if an element of result `k` decides it. The first element of result k is from[k * step].
  static void look(const Axes& axes, const uint8_t* from, int64_t step, int64_t n, int64_t first, int64_t last,
                   uint8_t* found) {
    const int32_t inner = axes.rank - 1;
    const int64_t length = axes.dims[inner], stride = axes.strides[inner];
    std::fill_n(found, n, uint8_t{0});
    for (int64_t i = first; i < last;) {
      const int64_t count = std::min(last - i, length - i % length);
      const uint8_t* at = from + axes.offset(i);
      if (stride == 1 && step >= count && count > 1 && count <= 8) {
        short_rows(found, at, step, n, count);
      } else if (stride == 1 && (step != 1 || count > n)) {
        for (int64_t k = 0; k < n; ++k) found[k] |= row(at + k * step, count);
      } else {
        for (int64_t r = 0; r < count; ++r) column(found, at + r * stride, step, n);
      }
      i += count;
    }
  }

  // Reads at most eight bytes as one word.
  static void short_rows(uint8_t* found, const uint8_t* at, int64_t step, int64_t n, int64_t count) {
    constexpr uint64_t ones = 0x0101010101010101;
    const uint64_t others = count == 8 ? 0 : ~uint64_t{0} << 8 * count;
    int64_t k = 0;
    for (; std::endian::native == std::endian::little && k * step + 8 <= (n - 1) * step + count; ++k) {
      uint64_t word;
      std::memcpy(&word, at + k * step, sizeof word);
      const uint64_t padded = word | others;
      const bool one = kAll ? ((padded - ones) & ~padded & ones << 7) != 0 : (word & ~others) != 0;
      found[k] |= static_cast<uint8_t>(one);
    }
    for (; k < n; ++k) found[k] |= row(at + k * step, count);
  }

  static uint8_t row(const uint8_t* at, int64_t count) {
    uint8_t one = 0;
    for (int64_t i = 0; i < count; ++i) one |= decides<kAll>(at[i]);
    return one;
  }

  static void column(uint8_t* found, const uint8_t* at, int64_t step, int64_t n) {
    if (step == 1) {
      for (int64_t k = 0; k < n; ++k) found[k] |= decides<kAll>(at[k]);
    } else {
      for (int64_t k = 0; k < n; ++k) found[k] |= decides<kAll>(at[k * step]);
    }
  }

  ep_primitive_desc desc_;
  uint32_t mask_;
};

}  // namespace

Refusal Reduce::bytes_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  const int32_t op = desc.attributes.reduce.op;
  if (op != EP_REDUCE_any && op != EP_REDUCE_all) return Refusal::because("reduction %d is neither any nor all", op);
  if (desc.operand_count > 1 && desc.operands[1].dtype != EP_DTYPE_bool) {
    return Refusal::because("%s is not a truth value of a byte", dtype_name(desc.operands[1].dtype));
  }
  return why_not(device, desc, info);
}

Refusal Reduce::make_bytes(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  if (desc.attributes.reduce.op == EP_REDUCE_all) {
    *out = make_primitive<ReduceBytes<true>>(device, desc);
  } else {
    *out = make_primitive<ReduceBytes<false>>(device, desc);
  }
  return {};
}

}  // namespace tenon::provider::cpu
