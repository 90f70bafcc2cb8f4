// reduce over any set of axes.
//
// If the innermost axis is reduced, each row becomes one value, and the values are combined (floats in double). If the
// innermost axis is kept, rows are combined element by element. The shape alone decides how the work is cut, never the
// number of threads, so the result has the same bits on any number of threads.
#include <cmath>
#include <limits>

#include "providers/cpu/reduction/reduction.h"
#include "providers/cpu/rows/kernel.h"
#include "providers/cpu/rows/row_primitive.h"
#include "sdk/provider/scalar_rows.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t block = 1024;       // elements per call of a kernel
constexpr int64_t merge_after = 256;  // rows that are added in f32 before the sum joins the total
constexpr int64_t most_pieces = 64;

// A reduction in one scalar type: f64 (also for f32, once blocks are reduced), i64 or u64.
template <class T>
struct ScalarReduce {
  T (*init)();
  T (*map)(T);
  T (*combine)(T, T);
  T (*finish)(T, T);
  T (*block)(const T*, int64_t);              // maps and combines
  void (*accumulate)(T*, const T*, int64_t);  // values = combine(values, map(src))
};

template <int32_t op, class T>
T block_of(const T* src, int64_t n) {
  const scalar::Op<op> row;
  T value = scalar::reduce_init<T>(row);
  for (int64_t i = 0; i < n; ++i) value = scalar::reduce_combine(row, value, scalar::reduce_map(row, src[i]));
  return value;
}

template <int32_t op, class T>
void accumulate_of(T* values, const T* src, int64_t n) {
  const scalar::Op<op> row;
  for (int64_t i = 0; i < n; ++i) values[i] = scalar::reduce_combine(row, values[i], scalar::reduce_map(row, src[i]));
}

template <class T, int32_t op>
ScalarReduce<T> scalar_of() {
  constexpr scalar::Domain domain = scalar::reduce_facts(op).domain;
  if constexpr (scalar::in_domain<T>(domain) || (domain == scalar::Domain::BOOL && !scalar::is_float<T>)) {
    using Row = scalar::Op<op>;
    return {[] { return scalar::reduce_init<T>(Row()); },
            [](T x) { return scalar::reduce_map(Row(), x); },
            [](T x, T y) { return scalar::reduce_combine(Row(), x, y); },
            [](T x, T n) { return scalar::reduce_finish(Row(), x, n); },
            block_of<op, T>,
            accumulate_of<op, T>};
  } else {
    return {};
  }
}

template <class T>
ScalarReduce<T> scalar_reduce(int32_t op) {
  switch (op) {
#define EP_REDUCE(name, id, domain, init, map, combine, finish) \
  case id:                                                      \
    return scalar_of<T, id>();
#include "ep_api/scalar_ops.def"
#undef EP_REDUCE
    default: return {};
  }
}

// The kernels for blocks of type B, and the type T in which the values of blocks are combined.
template <class B>
struct Kernels {
  using T = std::conditional_t<std::is_same_v<B, float>, double, B>;
  ScalarReduce<T> row;
  B (*block)(const B*, int64_t) = nullptr;
  void (*accumulate)(B*, const B*, int64_t) = nullptr;
  void (*merge)(B*, const B*, int64_t) = nullptr;  // NULL: accumulate without partial sums
};

template <class B>
Kernels<B> kernels_of(const ep_device& on, int32_t op) {
  using T = typename Kernels<B>::T;
  const ScalarReduce<T> row = scalar_reduce<T>(op);
  if constexpr (std::is_same_v<B, float>) {
    const ReduceKernels vector = reduce_kernels(on.simd, op);
    return {row, vector.block, vector.accumulate, vector.merge};
  } else {
    return {row, row.block, row.accumulate, nullptr};
  }
}

// The axes of a launch: kept axes of both operands, and reduced axes of the source.
struct Split {
  Axes kept_dst, kept_src, reduced;
};

template <class B>
class ReducePrimitive final : public RowPrimitive {
 public:
  using T = typename Kernels<B>::T;

  ReducePrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : RowPrimitive(on, desc, 1),
        format_(desc.operands[0].dtype),
        kernels_(kernels_of<B>(on, desc.attributes.reduce.op)),
        mask_(desc.attributes.reduce.axes) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const OperandShape dst = shape(launch.shapes, 0);
    const OperandShape src = shape(launch.shapes, 1);
    const Split split = {axes_of(dst, mask_, false), axes_of(src, mask_, false), axes_of(src, mask_, true)};
    const char* from = address_of(launch.operands[1]);
    char* to = address_of(launch.operands[0]);
    const bool kept_innermost = ((mask_ >> (src.rank - 1)) & 1U) == 0;
    const int64_t cost = split.kept_src.count() * split.reduced.count() / 4;
    if (kept_innermost && split.kept_src.rank > 0)
      columns(split, from, to, cost);
    else
      values(split, from, to, cost);
    return EP_STATUS_OK;
  }

 protected:
  int64_t row_length(const ep_shape*) const override { return block; }

 private:
  T finished(T value, int64_t n) const { return kernels_.row.finish(value, static_cast<T>(n)); }

  void store(char* to, T value) const {
    constexpr int32_t wide = std::is_same_v<T, double>    ? EP_DTYPE_f64
                             : std::is_same_v<T, int64_t> ? EP_DTYPE_i64
                                                          : EP_DTYPE_u64;
    narrow(wide, format_.dtype)(to, 1, &value, 1, 1);
  }

  // Reduces elements [begin, end) of the reduced axes. `from` is the address of element 0.
  T span(const Axes& axes, const char* from, int64_t begin, int64_t end) const {
    alignas(64) B buffer[block];
    const int32_t last = axes.rank - 1;
    const int64_t length = axes.dims[last];
    const int64_t stride = axes.strides[last];
    const bool direct = format_.same && stride == 1;
    T value = kernels_.row.init();
    for (int64_t i = begin; i < end;) {
      const int64_t inner = i % length;
      const int64_t n = std::min({length - inner, end - i, block});
      const char* at = from + axes.offset(i) * format_.size;
      if (!direct) format_.read(buffer, 1, at, stride, n);
      const B part = kernels_.block(direct ? reinterpret_cast<const B*>(at) : buffer, n);
      value = kernels_.row.combine(value, static_cast<T>(part));
      i += n;
    }
    return value;
  }

  // Computes one value per kept element. If few long reductions share many threads, each is cut into pieces; the shape
  // alone decides the length of a piece.
  void values(const Split& split, const char* from, char* to, int64_t cost) const {
    const int64_t outputs = split.kept_src.count();
    const int64_t n = split.reduced.count();
    const int64_t pieces = outputs >= most_pieces ? 1 : std::clamp<int64_t>(n / 65536, 1, most_pieces);
    const auto source = [&](int64_t output) { return from + split.kept_src.offset(output) * format_.size; };
    const auto target = [&](int64_t output) { return to + split.kept_dst.offset(output) * format_.size; };
    if (pieces == 1) {
      parallel(device->threads, cost, [&](int32_t part, int32_t parts) {
        for (int64_t i = outputs * part / parts; i < outputs * (part + 1) / parts; ++i) {
          store(target(i), finished(span(split.reduced, source(i), 0, n), n));
        }
      });
      return;
    }
    for (int64_t output = 0; output < outputs; ++output) {
      T partial[most_pieces];
      parallel(device->threads, cost / outputs, [&](int32_t part, int32_t parts) {
        for (int64_t piece = pieces * part / parts; piece < pieces * (part + 1) / parts; ++piece) {
          partial[piece] = span(split.reduced, source(output), n * piece / pieces, n * (piece + 1) / pieces);
        }
      });
      T value = kernels_.row.init();
      for (int64_t piece = 0; piece < pieces; ++piece) value = kernels_.row.combine(value, partial[piece]);
      store(target(output), finished(value, n));
    }
  }

  // Combines rows of the innermost kept axis, block by block.
  void columns(const Split& split, const char* from, char* to, int64_t cost) const {
    const int32_t last = split.kept_src.rank - 1;
    const int64_t length = split.kept_src.dims[last];
    const int64_t blocks = (length + block - 1) / block;
    const int64_t units = split.kept_src.count() / length * blocks;
    parallel(device->threads, cost, [&](int32_t part, int32_t parts) {
      for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
        const int64_t start = unit % blocks * block;
        const int64_t first = unit / blocks * length + start;
        column_block(split, from + split.kept_src.offset(first) * format_.size,
                     to + split.kept_dst.offset(first) * format_.size, std::min(block, length - start));
      }
    });
  }

  void column_block(const Split& split, const char* from, char* to, int64_t n) const {
    alignas(64) B buffer[block];
    alignas(64) B sums[block];
    alignas(64) B totals[block];
    const int64_t src_stride = split.kept_src.strides[split.kept_src.rank - 1];
    const int64_t dst_stride = split.kept_dst.strides[split.kept_dst.rank - 1];
    const bool direct = format_.same && src_stride == 1;
    const int64_t rows = split.reduced.count();
    const B init = static_cast<B>(kernels_.row.init());
    std::fill_n(sums, n, init);
    std::fill_n(totals, n, init);
    for (int64_t row = 0; row < rows; ++row) {
      const char* at = from + split.reduced.offset(row) * format_.size;
      if (!direct) format_.read(buffer, 1, at, src_stride, n);
      kernels_.accumulate(sums, direct ? reinterpret_cast<const B*>(at) : buffer, n);
      if (kernels_.merge != nullptr && (row + 1) % merge_after == 0) {
        kernels_.merge(totals, sums, n);
        std::fill_n(sums, n, init);
      }
    }
    for (int64_t i = 0; i < n; ++i) {
      const T value = kernels_.merge == nullptr
                          ? static_cast<T>(sums[i])
                          : kernels_.row.combine(static_cast<T>(totals[i]), static_cast<T>(sums[i]));
      store(to + i * dst_stride * format_.size, finished(value, rows));
    }
  }

  RowFormat format_;
  Kernels<B> kernels_;
  uint32_t mask_;
};

}  // namespace

Refusal Reduce::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count != 2 || desc.operands[1].role != EP_ROLE_SRC)
    return Refusal::because("its operands are not DST and SRC");
  const ep_reduce_attributes& attributes = desc.attributes.reduce;
  const ep_operand_desc& src = desc.operands[1];
  const scalar::RowFacts facts = scalar::reduce_facts(attributes.op);
  if (!facts.known || !scalar::defined_on(facts.domain, src.dtype) || dtype_size(src.dtype) == 0) {
    return Refusal::because("reduction %d is not defined on %s", attributes.op, dtype_name(src.dtype));
  }
  if (desc.operands[0].dtype != src.dtype)
    return Refusal::because("the result is %s", dtype_name(desc.operands[0].dtype));
  if (attributes.axes == 0 || (attributes.axes >> src.rank) != 0)
    return Refusal::because("axes 0x%x of rank %d", attributes.axes, src.rank);
  if (is_scalar(src) || desc.operands[0].rank != src.rank) return Refusal::because("ranks differ");
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Reduce::simd_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count > 1 && wide_dtype(desc.operands[1].dtype) != EP_DTYPE_f32) {
    return Refusal::because("%s is reduced element by element", dtype_name(desc.operands[1].dtype));
  }
  return why_not(device, desc, info);
}

Refusal Reduce::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  switch (wide_dtype(desc.operands[1].dtype)) {
    case EP_DTYPE_f32: *out = make_primitive<ReducePrimitive<float>>(device, device, desc); break;
    case EP_DTYPE_f64: *out = make_primitive<ReducePrimitive<double>>(device, device, desc); break;
    case EP_DTYPE_u64: *out = make_primitive<ReducePrimitive<uint64_t>>(device, device, desc); break;
    default: *out = make_primitive<ReducePrimitive<int64_t>>(device, device, desc); break;
  }
  return {};
}

}  // namespace tenon::provider::cpu
