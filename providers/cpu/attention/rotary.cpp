// rotary: rotates pairs of each row by the angles of its position. Computes in f32, or in f64 for f64.
#include "providers/cpu/attention/attention.h"
#include "providers/cpu/attention/problem.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// Part of a row that is processed at once.
constexpr int64_t piece = 256;  // pairs

template <class T>
void turn(T* x, T* y, const T* cosine, const T* sine, int64_t n) {
  for (int64_t i = 0; i < n; ++i) {
    const T first = x[i];
    x[i] = first * cosine[i] - y[i] * sine[i];
    y[i] = first * sine[i] + y[i] * cosine[i];
  }
}

class RotaryPrimitive final : public ep_primitive {
 public:
  RotaryPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        src_(find_operand(desc, EP_ROLE_SRC)),
        cosines_(find_operand(desc, EP_ROLE_SRC_B)),
        sines_(find_operand(desc, EP_ROLE_SRC_C)),
        indices_(find_operand(desc, EP_ROLE_INDICES)),
        halves_(desc.attributes.rotary.mode == EP_ROTARY_HALVES),
        format_(desc.operands[0].dtype, on.simd),
        angles_(desc.operands[cosines_].dtype, on.simd),
        widen_angles_(angles_.compute == format_.compute ? angles_.read
                                                         : narrow(angles_.compute, format_.compute, on.simd)) {}

  ep_status launch(const ep_launch& launch, ep_fault* out_fault, ep_error**) override {
    const OperandShape dst = shape(launch, 0);
    const int64_t rows = dst.dims[0] * dst.dims[1] * dst.dims[2];
    BadIndex bad;
    parallel(device->threads, rows * (10 + dst.dims[3]), [&](int32_t part, int32_t parts) {
      for (int64_t row = rows * part / parts; row < rows * (part + 1) / parts; ++row) {
        const int64_t at[] = {row / dst.dims[2] / dst.dims[1], row / dst.dims[2] % dst.dims[1], row % dst.dims[2]};
        if (format_.compute == EP_DTYPE_f64) {
          run_row<double>(launch, at, &bad);
        } else {
          run_row<float>(launch, at, &bad);
        }
      }
    });
    return indices_ < 0 ? EP_STATUS_OK : bad.answer(launch, indices_, out_fault);
  }

 private:
  OperandShape shape(const ep_launch& launch, int32_t i) const {
    return shape_of(desc_.operands[i], launch.shapes, static_cast<uint32_t>(i));
  }
  char* row_of(const ep_launch& launch, int32_t i, const int64_t* at, int32_t size) const {
    const OperandShape given = shape(launch, i);
    return address_of(launch.operands[i]) +
           (at[0] * given.strides[0] + at[1] * given.strides[1] + at[2] * given.strides[2]) * size;
  }
  // Returns the table row for the position at `at`, or -1 if the index is out of range.
  int64_t table_row(const ep_launch& launch, const int64_t* at, BadIndex* bad) const {
    const OperandShape given = shape(launch, indices_);
    const int64_t index =
        index_at(address_of(launch.operands[indices_]), at[0] * given.strides[0] + at[2] * given.strides[1],
                 desc_.operands[indices_].dtype == EP_DTYPE_i64);
    return resolve_index(index, shape(launch, cosines_).dims[0], bad);
  }

  template <class T>
  void run_row(const ep_launch& launch, const int64_t* at, BadIndex* bad) const {
    const OperandShape dst = shape(launch, 0);
    const OperandShape table = shape(launch, cosines_);
    const OperandShape other = shape(launch, sines_);
    const int64_t width = dst.dims[3];
    const int64_t to_step = dst.strides[3];
    const int64_t from_step = shape(launch, src_).strides[3];
    const int64_t pairs = table.dims[table.rank - 1];
    char* const to = row_of(launch, 0, at, format_.size);
    const char* const from = row_of(launch, src_, at, format_.size);
    const char* cosine = nullptr;
    const char* sine = nullptr;
    if (indices_ >= 0) {
      const int64_t row = table_row(launch, at, bad);
      if (row < 0) return;
      cosine = address_of(launch.operands[cosines_]) + row * table.strides[0] * angles_.size;
      sine = address_of(launch.operands[sines_]) + row * other.strides[0] * angles_.size;
    } else {
      cosine = row_of(launch, cosines_, at, angles_.size);
      sine = row_of(launch, sines_, at, angles_.size);
    }
    const int64_t cosine_step = table.strides[table.rank - 1];
    const int64_t sine_step = other.strides[other.rank - 1];
    const int64_t step = halves_ ? 1 : 2;
    const int64_t second = halves_ ? pairs : 1;
    alignas(64) T x[piece], y[piece], c[piece], s[piece];
    for (int64_t i = 0; i < pairs; i += piece) {
      const int64_t n = std::min(piece, pairs - i);
      format_.read(x, 1, from + i * step * from_step * format_.size, step * from_step, n);
      format_.read(y, 1, from + (i * step + second) * from_step * format_.size, step * from_step, n);
      read_angles(c, cosine + i * cosine_step * angles_.size, cosine_step, n);
      read_angles(s, sine + i * sine_step * angles_.size, sine_step, n);
      turn(x, y, c, s, n);
      format_.write(to + i * step * to_step * format_.size, step * to_step, x, 1, n);
      format_.write(to + (i * step + second) * to_step * format_.size, step * to_step, y, 1, n);
    }
    if (to == from) return;
    for (int64_t i = 2 * pairs; i < width; i += piece) {
      const int64_t n = std::min(piece, width - i);
      format_.read(x, 1, from + i * from_step * format_.size, from_step, n);
      format_.write(to + i * to_step * format_.size, to_step, x, 1, n);
    }
  }

  void read_angles(void* to, const char* from, int64_t stride, int64_t n) const {
    widen_angles_(to, 1, from, stride, n);
  }

  ep_primitive_desc desc_;
  int32_t src_, cosines_, sines_, indices_;
  bool halves_;
  RowFormat format_;
  RowFormat angles_;
  ConvertFunction widen_angles_;  // from the dtype of the angles to the compute type
};

}  // namespace

Refusal Rotary::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const int32_t dtype = desc.operands[0].dtype;
  const int32_t mode = desc.attributes.rotary.mode;
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* cosines = operand(desc, EP_ROLE_SRC_B);
  const ep_operand_desc* sines = operand(desc, EP_ROLE_SRC_C);
  const ep_operand_desc* indices = operand(desc, EP_ROLE_INDICES);
  if (src == nullptr || cosines == nullptr || sines == nullptr) return Refusal::because("an operand is missing");
  if (!is_row_float(dtype) || src->dtype != dtype || src->rank != 4)
    return Refusal::because("%s of rank %d", dtype_name(src->dtype), src->rank);
  if (mode != EP_ROTARY_HALVES && mode != EP_ROTARY_INTERLEAVED) return Refusal::because("mode %d", mode);
  if (cosines->dtype != sines->dtype || (cosines->dtype != EP_DTYPE_f32 && cosines->dtype != dtype))
    return Refusal::because("angles of %s", dtype_name(cosines->dtype));
  const int32_t rank = indices == nullptr ? 4 : 2;
  if (cosines->rank != rank || sines->rank != rank) return Refusal::because("angles of rank %d", cosines->rank);
  if (indices != nullptr && (indices->rank != 2 || (indices->dtype != EP_DTYPE_i32 && indices->dtype != EP_DTYPE_i64)))
    return Refusal::because("indices of %s", dtype_name(indices->dtype));
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Rotary::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<RotaryPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
