// softmax and log_softmax along one axis.
#include <algorithm>
#include <vector>

#include "providers/cpu/movement/strided_copy.h"
#include "providers/cpu/normalization/columns.h"
#include "providers/cpu/normalization/normalization.h"
#include "providers/cpu/rows/kernel.h"
#include "providers/cpu/rows/row_primitive.h"

namespace tenon::provider::cpu {
namespace {

class SoftmaxPrimitive final : public RowPrimitive {
 public:
  SoftmaxPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : RowPrimitive(on, desc, 2),
        format_(desc.operands[0].dtype, on.simd),
        kernels_(row_kernels(on.simd)),
        softmax_(softmax_kernels(on.simd)),
        mask_(1U << desc.attributes.softmax.axis),
        log_(desc.attributes.softmax.log != 0) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error**) override {
    const OperandShape dst = shape(launch.shapes, 0);
    const Axes dst_row = axes_of(dst, mask_, true);
    OperandShape src = shape(launch.shapes, 1);
    char* const to = address_of(launch.operands[0]);
    const char* from = address_of(launch.operands[1]);
    const bool in_place = overlap(format_.size, dst, to, src, from);
    if (!in_place && (!has_neighbours_of(dst, src) || loses_gaps(dst, src))) {
      copy_operand(format_.size, dst, to, src, from, device->simd, device->threads);
      src = dst;
      from = to;
    }
    const Axes src_row = axes_of(src, mask_, true);
    Axes dst_outer = axes_of(dst, mask_, false);
    Axes src_outer = axes_of(src, mask_, false);
    arrange(&dst_outer, &src_outer);
    if (has_columns(dst_row, dst_outer, src_outer)) {
      if (format_.compute == EP_DTYPE_f64)
        columns<double>(to, from, softmax_.wide_columns, dst_row, src_row, dst_outer, src_outer);
      else
        columns<float>(to, from, softmax_.columns, dst_row, src_row, dst_outer, src_outer);
      return EP_STATUS_OK;
    }
    const int64_t rows = dst_outer.count();
    const int64_t n = dst_row.count();
    const bool direct = format_.in_place(dst_row);
    const bool is_large = rows * n * format_.size > stream_bytes;
    const bool stream = direct && !in_place && from != to && n <= stack_row && is_large;
    // The choice must not depend on the alignment of rows, so that bits do not.
    const bool is_short = format_.compute == EP_DTYPE_f32 && n <= short_row_length && !is_large;
    const bool without_gaps =
        dst_row.contiguous() && src_row.contiguous() && dst_outer.contiguous(n) && src_outer.contiguous(n);
    if (without_gaps && n <= rows_as_columns && !stream) {
      if (format_.compute == EP_DTYPE_f32) {
        turned_rows<float>(softmax_.columns, to, from, rows, n);
        return EP_STATUS_OK;
      }
      if (softmax_.wide_columns != nullptr) {
        turned_rows<double>(softmax_.wide_columns, to, from, rows, n);
        return EP_STATUS_OK;
      }
    }
    const bool dense = format_.compute == EP_DTYPE_f32 && without_gaps;
    if (dense && is_short) {
      short_rows(launch, to, from, rows, n);
      return EP_STATUS_OK;
    }
    const bool in_rows =
        stream && !log_ && format_.same && dense && n % 16 == 0 && reinterpret_cast<uintptr_t>(to) % 64 == 0;
    for_rows(launch, rows, rows * n, [&](int64_t begin, int64_t end, char* buffer) {
      char* spare = buffer + n * 8;
      if (in_rows) {
        const int64_t bytes = begin * n * format_.size;
        kernels_.softmax_rows(reinterpret_cast<float*>(to + bytes), reinterpret_cast<const float*>(from + bytes),
                              reinterpret_cast<float*>(buffer), n, end - begin);
        return store_fence();
      }
      for (int64_t row = begin; row < end; ++row) {
        const void* values = format_.fetch(from + src_outer.offset(row) * format_.size, src_row, buffer);
        char* const target = to + dst_outer.offset(row) * format_.size;
        char* const result = direct ? target : spare;
        compute(result, values, spare, n, is_short, stream);
        if (!direct) format_.put(target, dst_row, result);
      }
      if (stream) store_fence();
    });
    return EP_STATUS_OK;
  }

 protected:
  int64_t row_length(const ep_shape* shapes) const override {
    return shape(shapes, 0).dims[desc_.attributes.softmax.axis];
  }

 private:
  static constexpr int64_t fewest_columns = 16;
  static constexpr int64_t many_rows = 64;
  static constexpr int64_t rows_as_columns = 8;  // elements of a row that is too short for its own vectors

  // True if short rows follow each other without gaps in the result, but not in the source.
  bool loses_gaps(const OperandShape& dst, const OperandShape& src) const {
    const int64_t n = dst.dims[desc_.attributes.softmax.axis];
    const auto dense = [&](const OperandShape& shape) {
      return axes_of(shape, mask_, true).contiguous() && axes_of(shape, mask_, false).contiguous(n);
    };
    return n <= short_row_length && dense(dst) && !dense(src);
  }

  // True if memory neighbours, in both operands, belong to different rows. A few long columns become rows instead: they
  // would fill their vectors and a large buffer badly.
  bool has_columns(const Axes& dst_row, const Axes& dst, const Axes& src) const {
    const int32_t last = dst.rank - 1;
    const bool there = format_.compute == EP_DTYPE_f32 || softmax_.wide_columns != nullptr;
    return there && last >= 0 && dst.strides[last] == 1 && src.strides[last] == 1 && dst.dims[last] > 1 &&
           dst_row.strides[0] > 1 && (dst.dims[last] >= fewest_columns || dst_row.dims[0] < many_rows);
  }

  // Rows without gaps that are too short to fill a vector: turns some at a time into columns, and their results back.
  template <class T>
  void turned_rows(SoftmaxColumns<T> kernel, char* to, const char* from, int64_t rows, int64_t n) const {
    constexpr int64_t most = rows_as_columns * softmax_columns;
    parallel(device->threads, rows * n * 2, [&](int32_t part, int32_t parts) {
      alignas(64) T converted[most], turned[most], buffer[most];
      const int64_t end = rows * (part + 1) / parts;
      for (int64_t row = rows * part / parts; row < end; row += softmax_columns) {
        const int64_t count = std::min(end - row, softmax_columns), offset = row * n * format_.size;
        const T* values = reinterpret_cast<const T*>(from + offset);
        T* results = reinterpret_cast<T*>(to + offset);
        if (!format_.same) {
          format_.read(converted, 1, values, 1, count * n);
          values = results = converted;
        }
        for (int64_t i = 0; i < n; ++i) {
          for (int64_t k = 0; k < softmax_columns; ++k)
            turned[i * softmax_columns + k] = k < count ? values[k * n + i] : T{0};
        }
        kernel(turned, softmax_columns, turned, softmax_columns, buffer, n, softmax_columns, log_);
        for (int64_t k = 0; k < count; ++k) {
          for (int64_t i = 0; i < n; ++i) results[k * n + i] = turned[i * softmax_columns + k];
        }
        if (!format_.same) format_.write(to + offset, 1, converted, 1, count * n);
      }
    });
  }

  template <class T>
  void columns(char* to, const char* from, SoftmaxColumns<T> kernel, const Axes& dst_row, const Axes& src_row,
               const Axes& dst, const Axes& src) const {
    const int64_t length = dst.dims[dst.rank - 1];
    const int64_t blocks = (length + softmax_columns - 1) / softmax_columns;
    const int64_t units = dst.count() / length * blocks;
    const int64_t rows = dst_row.dims[0];
    parallel(device->threads, dst.count() * rows / 2, [&](int32_t part, int32_t parts) {
      std::vector<T> buffer(static_cast<size_t>((format_.same ? 1 : 2) * rows * softmax_columns));
      T* wide = buffer.data() + rows * softmax_columns;  // for narrow types
      for (int64_t unit = units * part / parts; unit < units * (part + 1) / parts; ++unit) {
        const int64_t start = unit % blocks * softmax_columns;
        const int64_t first = unit / blocks * length + start;
        const int64_t n = std::min(softmax_columns, length - start);
        char* target = to + dst.offset(first) * format_.size;
        const char* source = from + src.offset(first) * format_.size;
        if (format_.same) {
          kernel(reinterpret_cast<T*>(target), dst_row.strides[0], reinterpret_cast<const T*>(source),
                 src_row.strides[0], buffer.data(), rows, n, log_);
          continue;
        }
        for (int64_t row = 0; row < rows; ++row)
          format_.read(wide + row * softmax_columns, 1, source + row * src_row.strides[0] * format_.size, 1, n);
        kernel(wide, softmax_columns, wide, softmax_columns, buffer.data(), rows, n, log_);
        for (int64_t row = 0; row < rows; ++row)
          format_.write(target + row * dst_row.strides[0] * format_.size, 1, wide + row * softmax_columns, 1, n);
      }
    });
  }

  // Processes rows in order, a few at a time. Narrow rows pass through a buffer.
  void short_rows(const ep_launch& launch, char* to, const char* from, int64_t rows, int64_t n) const {
    static_assert(most_short_rows * short_row_length <= stack_row);
    for_rows(launch, rows, rows * n, [&](int64_t begin, int64_t end, char* buffer) {
      for (int64_t row = begin; row < end; row += most_short_rows) {
        const int64_t count = std::min(end - row, most_short_rows);
        const int64_t offset = row * n * format_.size;
        const void* src = from + offset;
        if (!format_.same) format_.read(buffer, 1, src, 1, count * n);
        float* dst = reinterpret_cast<float*>(format_.same ? to + offset : buffer);
        kernels_.softmax_short_rows(dst, static_cast<const float*>(format_.same ? src : buffer), n, count, log_);
        if (!format_.same) format_.write(to + offset, 1, buffer, 1, count * n);
      }
    });
  }

  void compute(char* to, const void* from, char* spare, int64_t n, bool is_short, bool stream) const {
    if (format_.compute == EP_DTYPE_f64) {
      return softmax_.wide_row(reinterpret_cast<double*>(to), static_cast<const double*>(from), n, log_);
    }
    if (is_short) {
      return kernels_.softmax_short_rows(reinterpret_cast<float*>(to), static_cast<const float*>(from), n, 1, log_);
    }
    kernels_.softmax(reinterpret_cast<float*>(to), static_cast<const float*>(from), reinterpret_cast<float*>(spare), n,
                     log_, stream);
  }

  RowFormat format_;
  RowKernels kernels_;
  SoftmaxKernels softmax_;
  uint32_t mask_;
  bool log_;
};

}  // namespace

Refusal Softmax::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count != 2 || desc.operands[1].role != EP_ROLE_SRC)
    return Refusal::because("its operands are not DST and SRC");
  const int32_t dtype = desc.operands[0].dtype;
  if (!is_row_float(dtype) || desc.operands[1].dtype != dtype)
    return Refusal::because("%s is not a float", dtype_name(dtype));
  const int32_t axis = desc.attributes.softmax.axis;
  if (axis < 0 || axis >= desc.operands[0].rank)
    return Refusal::because("axis %d of rank %d", axis, desc.operands[0].rank);
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Softmax::simd_why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operands[0].dtype == EP_DTYPE_f64 && device.simd == SimdLevel::baseline)
    return Refusal::because("f64 is computed element by element");
  return why_not(device, desc, info);
}

Refusal Softmax::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<SoftmaxPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
