// reduce over any set of axes.
//
// If the innermost axis is reduced, each row becomes one value, and the values are combined (floats in double). If the
// innermost axis is kept, rows are combined element by element. The division of the work depends only on the shape, so
// the result has the same bits for any number of threads.
#include <algorithm>
#include <type_traits>
#include <utility>
#include <vector>

#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/reduction/kernel.h"
#include "providers/cpu/reduction/reduction.h"
#include "providers/cpu/reduction/split.h"
#include "providers/cpu/rows/row_primitive.h"
#include "sdk/provider/scalar_rows.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t block = 1024;        // elements per kernel call
constexpr int64_t merge_after = 256;   // rows that are summed in f32 before the sum is added to the total
constexpr int64_t longest_row = 4096;  // elements that are summed in f32
constexpr int64_t few = 16;            // elements of a row that is too short for its own loop
constexpr int64_t short_line = 64;     // fewer columns are reduced in groups of rows
constexpr int64_t column_width = 256;  // columns per thread and call
constexpr int64_t wide_width = 2048;   // the same if the rows are read from memory, not from a cache
constexpr int64_t from_memory = int64_t{4} << 20;
constexpr int64_t most_pieces = 64;
constexpr int64_t copied_elements = 4096;  // elements of rows with gaps that are copied at a time

// A reduction in one scalar type: f64 (also for the block results of f32) or an integer.
template <class T>
struct ScalarReduce {
  T (*init)();
  T (*combine)(T, T);
  T (*finish)(T, T);
  void (*finish_all)(T*, int64_t n, T count);  // values[i] = finish(values[i], count)
  void (*merge)(T*, const float*, int64_t);    // totals = combine(totals, sums)
  void (*merge_wide)(T*, const T*, int64_t);
};

template <int32_t op, class T, class B>
void merge_of(T* totals, const B* sums, int64_t n) {
  for (int64_t i = 0; i < n; ++i)
    totals[i] = scalar::reduce_combine(scalar::Op<op>(), totals[i], static_cast<T>(sums[i]));
}

template <int32_t op, class T>
void finish_all_of(T* values, int64_t n, T count) {
  for (int64_t i = 0; i < n; ++i) values[i] = scalar::reduce_finish(scalar::Op<op>(), values[i], count);
}

template <class T, int32_t op>
ScalarReduce<T> scalar_of() {
  constexpr scalar::Domain domain = scalar::reduce_facts(op).domain;
  if constexpr (scalar::in_domain<T>(domain) || (domain == scalar::Domain::BOOL && !scalar::is_float<T>)) {
    using Row = scalar::Op<op>;
    return {[] { return scalar::reduce_init<T>(Row()); },
            [](T x, T y) { return scalar::reduce_combine(Row(), x, y); },
            [](T x, T n) { return scalar::reduce_finish(Row(), x, n); },
            finish_all_of<op, T>,
            merge_of<op, T, float>,
            merge_of<op, T, T>};
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

// The kernels for blocks of type B, and the type T in which block results are combined.
template <class B>
struct Kernels {
  using T = std::conditional_t<std::is_same_v<B, float>, double, B>;
  ScalarReduce<T> row;
  ReduceKernels<B> wide;                               // for elements of type B
  ReduceKernels<B> stored;                             // for stored elements; all NULL if those must be converted first
  void (*finish)(float*, int64_t, int64_t) = nullptr;  // for f32
};

template <class B>
Kernels<B> kernels_of(const ep_device& on, int32_t op, const RowFormat& format) {
  using T = typename Kernels<B>::T;
  const ScalarReduce<T> row = scalar_reduce<T>(op);
  if constexpr (std::is_floating_point_v<B>) {
    return {row, reduce_kernels<B>(on.simd, op, format.compute), reduce_kernels<B>(on.simd, op, format.dtype),
            std::is_same_v<B, float> ? reduce_finish(on.simd, op) : nullptr};
  } else {
    const ReduceKernels<B> loops = integer_reduce_kernels<B>(on.simd, op);
    return {row, loops, loops};
  }
}

template <class B>
class ReducePrimitive final : public RowPrimitive {
 public:
  using T = typename Kernels<B>::T;

  ReducePrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : RowPrimitive(on, desc, 1),
        format_(std::is_integral_v<B> ? RowFormat::stored(desc.operands[0].dtype)
                                      : RowFormat(desc.operands[0].dtype, on.simd)),
        kernels_(kernels_of<B>(on, desc.attributes.reduce.op, format_)),
        direct_block_(direct_block(on.simd)),
        mask_(desc.attributes.reduce.axes) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const OperandShape dst = shape(launch.shapes, 0);
    const OperandShape src = shape(launch.shapes, 1);
    Split split = {axes_of(dst, mask_, false), axes_of(src, mask_, false), axes_of(src, mask_, true)};
    split.fold();
    const char* from = address_of(launch.operands[1]);
    char* to = address_of(launch.operands[0]);
    const int64_t cost = split.kept_src.count() * split.reduced.count() / 8;
    if (split.reduced.count() > 1 && has_rows(split))
      rows(split, from, to, cost);
    else if (has_columns(split))
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
    if constexpr (std::is_integral_v<T>)
      format_.write(to, 1, &value, 1, 1);
    else
      narrow(EP_DTYPE_f64, format_.dtype)(to, 1, &value, 1, 1);
  }

  // Reduces elements [begin, end) of the reduced axes. `from` is the address of element 0.
  T span(const Axes& axes, const char* from, int64_t begin, int64_t end) const {
    alignas(64) B buffer[block];
    const int32_t last = axes.rank - 1;
    const int64_t length = axes.dims[last];
    const int64_t stride = axes.strides[last];
    const bool direct = kernels_.stored.block != nullptr && stride == 1;
    T value = kernels_.row.init();
    for (int64_t i = begin; i < end;) {
      const int64_t inner = i % length;
      const int64_t n = std::min({length - inner, end - i, direct ? direct_block_ : block});
      const char* at = from + axes.offset(i) * format_.size;
      if (!direct) format_.read(buffer, 1, at, stride, n);
      const B part = direct ? kernels_.stored.block(at, n) : kernels_.wide.block(buffer, n);
      value = kernels_.row.combine(value, static_cast<T>(part));
      i += n;
    }
    return value;
  }

  // Computes one value per kept element. If there are few long reductions for many threads, each is divided into
  // pieces, whose length depends only on the shape.
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

  // True if memory neighbours belong to different results, or too few of them to the same result.
  static bool has_columns(const Split& split) {
    if (split.kept_src.rank == 0) return false;
    const int64_t kept = split.kept_src.strides[split.kept_src.rank - 1];
    const int64_t reduced = split.reduced.strides[split.reduced.rank - 1];
    if (kept >= 1 && (kept < reduced || reduced == 0 || split.reduced.count() == 1)) return true;
    return split.reduced.count() <= few && split.kept_src.dims[split.kept_src.rank - 1] > few;
  }

  // True if each result belongs to one contiguous row, which vectors reduce at once.
  bool has_rows(const Split& split) const {
    return kernels_.stored.rows != nullptr && split.kept_src.rank > 0 && split.reduced.rank == 1 &&
           split.reduced.strides[0] == 1 && split.reduced.dims[0] <= longest_row &&
           (format_.same || split.reduced.dims[0] >= shortest_row);
  }

  void rows(const Split& split, const char* from, char* to, int64_t cost) const {
    const int32_t last = split.kept_src.rank - 1;
    const int64_t line = split.kept_src.dims[last];
    const int64_t dst_stride = split.kept_dst.strides[last];
    const int64_t outputs = split.kept_src.count();
    parallel(device->threads, cost, [&](int32_t part, int32_t parts) {
      alignas(64) B buffer[block];
      const int64_t end = outputs * (part + 1) / parts;
      for (int64_t i = outputs * part / parts; i < end;) {
        const int64_t n = std::min({end - i, line - i % line, block});
        const char* src = from + split.kept_src.offset(i) * format_.size;
        char* dst = to + split.kept_dst.offset(i) * format_.size;
        B* values = format_.same && dst_stride == 1 ? reinterpret_cast<B*>(dst) : buffer;
        kernels_.stored.rows(values, src, split.kept_src.strides[last], n, split.reduced.dims[0]);
        finish_all(values, n, split.reduced.dims[0]);
        if (values == buffer) format_.write(dst, dst_stride, values, 1, n);
        i += n;
      }
    });
  }

  // values[i] = finish(values[i], count)
  void finish_all(B* values, int64_t n, int64_t count) const {
    if constexpr (std::is_same_v<B, float>) {
      kernels_.finish(values, n, count);
    } else {
      kernels_.row.finish_all(values, n, static_cast<B>(count));
    }
  }

  // Combines rows of the innermost kept axis, a few columns at a time. If few threads would have work, the rows are
  // divided into pieces too, depending only on the shape.
  void columns(const Split& split, const char* from, char* to, int64_t cost) const {
    const int32_t last = split.kept_src.rank - 1;
    const int64_t length = split.kept_src.dims[last];
    const int64_t rows = split.reduced.count();
    if (has_few_rows(split)) return few_rows(split, from, to, cost);
    const int64_t width = std::min(length, split.kept_src.count() * rows < from_memory ? column_width : wide_width);
    const int64_t blocks = (length + width - 1) / width;
    const int64_t units = split.kept_src.count() / length * blocks;
    const int64_t pieces = units >= 8 ? 1 : std::clamp<int64_t>(rows * width / 65536, 1, most_pieces);
    std::vector<T> totals(static_cast<size_t>(pieces == 1 ? 0 : units * pieces * width));
    const auto place = [&](int64_t unit) {
      const int64_t start = unit % blocks * width;
      return std::pair(unit / blocks * length + start, std::min(width, length - start));
    };
    parallel(device->threads, cost, [&](int32_t part, int32_t parts) {
      alignas(64) T own[wide_width];
      for (int64_t i = units * pieces * part / parts; i < units * pieces * (part + 1) / parts; ++i) {
        const auto [first, n] = place(i / pieces);
        T* values = pieces == 1 ? own : totals.data() + i * width;
        const int64_t piece = i % pieces;
        combine_columns(split, from + split.kept_src.offset(first) * format_.size, rows * piece / pieces,
                        rows * (piece + 1) / pieces, n, values);
        if (pieces == 1) finish_columns(split, to + split.kept_dst.offset(first) * format_.size, rows, n, values);
      }
    });
    for (int64_t unit = 0; unit < (pieces == 1 ? 0 : units); ++unit) {
      const auto [first, n] = place(unit);
      T* values = totals.data() + unit * pieces * width;
      for (int64_t piece = 1; piece < pieces; ++piece) kernels_.row.merge_wide(values, values + piece * width, n);
      finish_columns(split, to + split.kept_dst.offset(first) * format_.size, rows, n, values);
    }
  }

  // True if the rows are so few that their combination needs no totals of a wider type.
  bool has_few_rows(const Split& split) const {
    const int32_t last = split.kept_src.rank - 1;
    const int64_t rows = split.reduced.count();
    return kernels_.stored.columns != nullptr && split.reduced.rank == 1 && rows <= merge_after &&
           split.kept_src.dims[last] >= few && (rows == 1 || split.kept_src.strides[last] == 1);
  }

  // Combines a few rows, at once in the result if it has the type of the sums.
  void few_rows(const Split& split, const char* from, char* to, int64_t cost) const {
    const int32_t last = split.kept_src.rank - 1;
    const int64_t length = split.kept_src.dims[last], rows = split.reduced.count();
    const int64_t src_stride = split.kept_src.strides[last], dst_stride = split.kept_dst.strides[last];
    const int64_t blocks = (length + wide_width - 1) / wide_width;
    const int64_t units = split.kept_src.count() / length * blocks;
    const ConvertFunction gather = move_elements(format_.size);
    parallel(device->threads, cost, [&](int32_t part, int32_t parts) {
      alignas(64) char packed[wide_width * 8];
      alignas(64) B sums[wide_width];
      for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
        const int64_t start = unit % blocks * wide_width, first = unit / blocks * length + start;
        const int64_t n = std::min(wide_width, length - start);
        const char* at = from + split.kept_src.offset(first) * format_.size;
        char* const target = to + split.kept_dst.offset(first) * format_.size;
        if (src_stride != 1) {
          gather(packed, 1, at, src_stride, n);
          at = packed;
        }
        B* const values = format_.same && dst_stride == 1 ? reinterpret_cast<B*>(target) : sums;
        std::fill_n(values, n, static_cast<B>(kernels_.row.init()));
        kernels_.stored.columns(values, at, split.reduced.strides[0], rows, n);
        finish_all(values, n, rows);
        if (values == sums) format_.write(target, dst_stride, sums, 1, n);
      }
    });
  }

  // totals[j] = the combination of rows [begin, end) of column j.
  void combine_columns(const Split& split, const char* from, int64_t begin, int64_t end, int64_t n, T* totals) const {
    const int32_t last = split.reduced.rank - 1;
    const int64_t length = split.reduced.dims[last];
    const int64_t row_stride = split.reduced.strides[last];
    const bool direct = kernels_.stored.columns != nullptr && split.kept_src.strides[split.kept_src.rank - 1] == 1;
    std::fill_n(totals, n, kernels_.row.init());
    if (direct && n < short_line && last == 0 && row_stride == n)
      return combine_packed(kernels_.stored, format_.size, from + begin * n * format_.size, end - begin, n, totals);
    if (!direct || n < few) return combine_copies(split, from, begin, end, n, totals);
    alignas(64) B sums[wide_width];
    for (int64_t row = begin; row < end;) {
      const int64_t until = std::min(end, row + merge_after);
      std::fill_n(sums, n, static_cast<B>(kernels_.row.init()));
      while (row < until) {
        const char* at = from + split.reduced.offset(row) * format_.size;
        const int64_t count = std::min(until - row, length - row % length);
        kernels_.stored.columns(sums, at, row_stride, count, n);
        row += count;
      }
      merge(totals, sums, n);
    }
  }

  // Combines rows with gaps, or of elements without kernels of their own: copies some rows at a time.
  void combine_copies(const Split& split, const char* from, int64_t begin, int64_t end, int64_t n, T* totals) const {
    alignas(64) char packed[copied_elements * 8];
    alignas(64) B converted[copied_elements];
    const int32_t last = split.reduced.rank - 1;
    const int64_t length = split.reduced.dims[last];
    const int64_t row_stride = split.reduced.strides[last];
    const int64_t src_stride = split.kept_src.strides[split.kept_src.rank - 1];
    const int64_t members = members_of(n), fit = copied_elements / n, most = std::max(fit - fit % members, int64_t{1});
    for (int64_t row = begin; row < end;) {
      const char* at = from + split.reduced.offset(row) * format_.size;
      const int64_t count = std::min({end - row, length - row % length, most});
      if (src_stride != 1 || row_stride != n) {
        const int64_t dims[] = {count, n}, strides[] = {row_stride, src_stride};
        strided_copy(to_dense(format_.size, dims, strides), packed, at, device->simd, 1);
        at = packed;
      }
      if (kernels_.stored.columns != nullptr) {
        combine_packed(kernels_.stored, format_.size, at, count, n, totals);
      } else {
        format_.read(converted, 1, at, 1, count * n);
        combine_packed(kernels_.wide, sizeof(B), reinterpret_cast<const char*>(converted), count, n, totals);
      }
      row += count;
    }
  }

  // The number of short rows without gaps that form one row of more columns.
  static int64_t members_of(int64_t n) { return n >= short_line ? 1 : (n <= 4 ? 64 : 16); }

  // Combines rows without gaps, whose elements have `size` bytes.
  void combine_packed(const ReduceKernels<B>& kernels, int64_t size, const char* from, int64_t rows, int64_t n,
                      T* totals) const {
    alignas(64) B sums[wide_width];
    const int64_t members = members_of(n);
    while (rows > 0) {
      const int64_t together = rows >= members ? members : 1;
      const int64_t groups = std::min(rows / together, merge_after);
      std::fill_n(sums, together * n, static_cast<B>(kernels_.row.init()));
      kernels.columns(sums, from, together * n, groups, together * n);
      for (int64_t member = 0; member < together; ++member) merge(totals, sums + member * n, n);
      from += groups * together * n * size;
      rows -= groups * together;
    }
  }

  void merge(T* totals, const B* sums, int64_t n) const {
    if constexpr (std::is_same_v<B, T>)
      kernels_.row.merge_wide(totals, sums, n);
    else
      kernels_.row.merge(totals, sums, n);
  }

  void finish_columns(const Split& split, char* to, int64_t rows, int64_t n, const T* totals) const {
    alignas(64) B values[wide_width];
    for (int64_t i = 0; i < n; ++i) values[i] = static_cast<B>(totals[i]);
    finish_all(values, n, rows);
    format_.write(to, split.kept_dst.strides[split.kept_dst.rank - 1], values, 1, n);
  }

  // Elements per call without conversion: 64 for each partial sum of a kernel.
  static int64_t direct_block(SimdLevel level) {
    return level == SimdLevel::avx3 ? 4 * block : level == SimdLevel::avx2 ? 2 * block : block;
  }

  RowFormat format_;
  Kernels<B> kernels_;
  int64_t direct_block_;
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

Refusal Reduce::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  switch (desc.operands[1].dtype) {
    case EP_DTYPE_i8: *out = make_primitive<ReducePrimitive<int8_t>>(device, device, desc); break;
    case EP_DTYPE_i16: *out = make_primitive<ReducePrimitive<int16_t>>(device, device, desc); break;
    case EP_DTYPE_i32: *out = make_primitive<ReducePrimitive<int32_t>>(device, device, desc); break;
    case EP_DTYPE_i64: *out = make_primitive<ReducePrimitive<int64_t>>(device, device, desc); break;
    case EP_DTYPE_bool:
    case EP_DTYPE_u8: *out = make_primitive<ReducePrimitive<uint8_t>>(device, device, desc); break;
    case EP_DTYPE_u16: *out = make_primitive<ReducePrimitive<uint16_t>>(device, device, desc); break;
    case EP_DTYPE_u32: *out = make_primitive<ReducePrimitive<uint32_t>>(device, device, desc); break;
    case EP_DTYPE_u64: *out = make_primitive<ReducePrimitive<uint64_t>>(device, device, desc); break;
    case EP_DTYPE_f64: *out = make_primitive<ReducePrimitive<double>>(device, device, desc); break;
    default: *out = make_primitive<ReducePrimitive<float>>(device, device, desc); break;
  }
  return {};
}

}  // namespace tenon::provider::cpu
