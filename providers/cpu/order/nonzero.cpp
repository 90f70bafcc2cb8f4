// nonzero: threads count every chunk of the source, then write the positions that they find. Each chunk starts where
// the previous chunks end.
#include <algorithm>

#include "providers/cpu/order/order.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t chunk_length = 1 << 14;
constexpr int64_t block = 256;  // elements tested at a time

class NonzeroPrimitive final : public ep_primitive {
 public:
  NonzeroPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        size_(dtype_size(desc.operands[2].dtype)),
        is_float_(is_floating(desc.operands[2].dtype)),
        threads_(on.threads) {}

  uint64_t workspace(const ep_shape* shapes) const override {
    const int64_t n = axes_of(shape_of(desc_.operands[2], shapes, 2), ~0U, true).count();
    return static_cast<uint64_t>(chunks_of(n) * 8);
  }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    switch (size_) {
      case 1: run<uint8_t>(launch); break;
      case 2: run<uint16_t>(launch); break;
      case 4: run<uint32_t>(launch); break;
      default: run<uint64_t>(launch);
    }
    return EP_STATUS_OK;
  }

 private:
  static int64_t chunks_of(int64_t n) { return (n + chunk_length - 1) / chunk_length; }

  template <class U>
  void run(const ep_launch& launch) const {
    const OperandShape dst = shape_of(desc_.operands[0], launch.shapes, 0);
    Axes axes = axes_of(shape_of(desc_.operands[2], launch.shapes, 2), ~0U, true);
    const int64_t n = axes.count();
    const int64_t chunks = chunks_of(n);
    const U* const from = reinterpret_cast<const U*>(address_of(launch.operands[2]));
    auto* const to = reinterpret_cast<int64_t*>(address_of(launch.operands[0]));
    auto* const counts = reinterpret_cast<int64_t*>(address_of(launch.workspace));
    // Ignores the sign bit of floats, because -0 counts as 0.
    const U mask = is_float_ ? static_cast<U>(static_cast<U>(~U{0}) >> 1) : static_cast<U>(~U{0});
    const auto for_chunks = [&](const auto& body) {
      parallel(threads_, n, [&](int32_t part, int32_t parts) {
        for (int64_t c = chunks * part / parts; c < chunks * (part + 1) / parts; ++c) {
          body(c, c * chunk_length, std::min(n, (c + 1) * chunk_length));
        }
      });
    };
    for_chunks([&](int64_t c, int64_t begin, int64_t end) {
      int64_t count = 0;
      for_runs(axes, begin, end, [&](int64_t, int64_t offset, int64_t stride, int64_t length) {
        const U* const run = from + offset;
        int32_t here = 0;
        for (int64_t i = 0; i < length; ++i) here += (run[i * stride] & mask) != 0 ? 1 : 0;
        count += here;
      });
      counts[c] = count;
    });
    int64_t total = 0;
    for (int64_t c = 0; c < chunks; ++c) {
      const int64_t here = counts[c];
      counts[c] = total;
      total += here;
    }
    for_chunks([&](int64_t c, int64_t begin, int64_t end) {
      int64_t row = counts[c];
      for_runs(axes, begin, end, [&](int64_t number, int64_t offset, int64_t stride, int64_t length) {
        if (row >= dst.dims[0]) return;
        int32_t found[block];
        int32_t hits = 0;
        const U* const run = from + offset;
        for (int64_t i = 0; i < length; ++i) {
          found[hits] = static_cast<int32_t>(i);
          hits += (run[i * stride] & mask) != 0 ? 1 : 0;
        }
        hits = static_cast<int32_t>(std::min<int64_t>(hits, dst.dims[0] - row));
        write(dst, axes, to, row, number, found, hits);
        row += hits;
      });
    });
    for (int64_t row = total; row < dst.dims[0]; ++row) {
      for (int64_t k = 0; k < dst.dims[1]; ++k) to[row * dst.strides[0] + k * dst.strides[1]] = 0;
    }
    *reinterpret_cast<int64_t*>(address_of(launch.operands[1])) = total;
  }

  // Calls body(number of the first element, its offset, stride, length) for runs of at most `block` elements along the
  // last axis.
  template <class Body>
  static void for_runs(const Axes& axes, int64_t begin, int64_t end, const Body& body) {
    const int64_t line = axes.dims[axes.rank - 1];
    const int64_t stride = axes.strides[axes.rank - 1];
    for (int64_t at = begin; at < end;) {
      const int64_t length = std::min({block, end - at, line - at % line});
      body(at, axes.offset(at), stride, length);
      at += length;
    }
  }

  // Writes the indices of elements number + found[i], to rows from `row` on.
  static void write(const OperandShape& dst, const Axes& axes, int64_t* to, int64_t row, int64_t number,
                    const int32_t* found, int32_t hits) {
    int64_t rest = number;
    for (int32_t k = axes.rank - 1; k >= 0; --k) {
      const int64_t index = rest % axes.dims[k];
      rest /= axes.dims[k];
      int64_t* const column = to + row * dst.strides[0] + k * dst.strides[1];
      if (k == axes.rank - 1) {
        for (int32_t i = 0; i < hits; ++i) column[i * dst.strides[0]] = index + found[i];
      } else {
        for (int32_t i = 0; i < hits; ++i) column[i * dst.strides[0]] = index;
      }
    }
  }

  ep_primitive_desc desc_;
  int32_t size_;
  bool is_float_;
  int32_t threads_;
};

}  // namespace

Refusal Nonzero::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count != 3 || desc.operands[0].role != EP_ROLE_DST || desc.operands[1].role != EP_ROLE_DST_COUNT ||
      desc.operands[2].role != EP_ROLE_SRC) {
    return Refusal::because("its operands are not DST, DST_COUNT and SRC");
  }
  if (desc.operands[0].dtype != EP_DTYPE_i64 || desc.operands[1].dtype != EP_DTYPE_i64)
    return Refusal::because("positions of %s", dtype_name(desc.operands[0].dtype));
  const ep_operand_desc& src = desc.operands[2];
  if (dtype_size(src.dtype) == 0) return Refusal::because("a source of %s", dtype_name(src.dtype));
  if (desc.operands[0].rank != 2) return Refusal::because("a result of rank %d", desc.operands[0].rank);
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Nonzero::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<NonzeroPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
