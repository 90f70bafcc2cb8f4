#include "providers/cpu/fft/fft.h"

#include <cmath>
#include <complex>
#include <kissfft/kissfft.hh>
#include <memory>
#include <vector>

#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

using Complex = std::complex<double>;

// One operand: its lines along the axis, real or of pairs.
struct Lines {
  RowFormat format;
  char* base = nullptr;
  Axes outer;
  int64_t length = 0;
  int64_t stride = 0;
  int64_t pair = 0;  // the distance of the imaginary part
  bool real = false;

  Lines(const ep_launch& launch, const ep_primitive_desc& desc, uint32_t number, bool is_real, int32_t axis)
      : format(desc.operands[number].dtype), base(address_of(launch.operands[number])), real(is_real) {
    const OperandShape shape = shape_of(desc.operands[number], launch.shapes, number);
    const int32_t last = shape.rank - 1;
    for (int32_t i = 0; i < (real ? shape.rank : last); ++i) {
      if (i != axis) outer.add(shape.dims[i], shape.strides[i]);
    }
    length = shape.dims[axis];
    stride = shape.strides[axis];
    pair = real ? 0 : shape.strides[last];
  }

  char* place(int64_t line) const { return base + outer.offset(line) * format.size; }

  // Part 0 or 1 of all elements of a line, through the buffer.
  void read(int64_t line, int64_t part, std::vector<char>* buffer, double* values, int64_t step) const {
    format.read(buffer->data(), 1, place(line) + part * pair * format.size, stride, length);
    narrow(format.compute, EP_DTYPE_f64)(values, step, buffer->data(), 1, length);
  }
  void write(int64_t line, int64_t part, const double* values, int64_t step) const {
    narrow(EP_DTYPE_f64, format.dtype)(place(line) + part * pair * format.size, stride, values, step, length);
  }
};

class FftPrimitive final : public ep_primitive {
 public:
  explicit FftPrimitive(const ep_primitive_desc& desc) : desc_(desc), at_(desc.attributes.fft) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    if (launch.scalar_count < 1) {
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "fft has no launch scalar 0, the factor.");
    }
    const double scale = launch.scalars[0].value.f64;
    const Lines dst(launch, desc_, 0, at_.form == EP_FFT_HALF_TO_REAL, at_.axis);
    const Lines src(launch, desc_, 1, at_.form == EP_FFT_REAL_TO_HALF, at_.axis);
    const int64_t n = at_.form == EP_FFT_REAL_TO_HALF ? src.length : dst.length;
    const kissfft<double> shared(static_cast<size_t>(n), at_.inverse != 0);
    const int64_t lines = dst.outer.count();
    const auto each = static_cast<int64_t>(static_cast<double>(n) * (4 + 3 * std::log2(static_cast<double>(n))));
    parallel(device->threads, lines * each, [&](int32_t part, int32_t parts) {
      const kissfft<double> plan(shared);  // it has a buffer that transforms write
      std::vector<char> buffer(static_cast<size_t>(n) * 8);
      std::vector<Complex> in(static_cast<size_t>(n));
      std::vector<Complex> out(static_cast<size_t>(n));
      for (int64_t line = lines * part / parts; line < lines * (part + 1) / parts; ++line) {
        read(src, line, n, &buffer, in.data());
        plan.transform(in.data(), out.data());
        for (Complex& each_out : out) each_out *= scale;
        const auto* const values = reinterpret_cast<const double*>(out.data());
        dst.write(line, 0, values, 2);
        if (!dst.real) dst.write(line, 1, values + 1, 2);
      }
    });
    return EP_STATUS_OK;
  }

 private:
  void read(const Lines& src, int64_t line, int64_t n, std::vector<char>* buffer, Complex* in) const {
    auto* const values = reinterpret_cast<double*>(in);
    src.read(line, 0, buffer, values, 2);
    if (src.real) {
      for (int64_t i = 0; i < n; ++i) values[2 * i + 1] = 0;
      return;
    }
    src.read(line, 1, buffer, values + 1, 2);
    if (at_.form != EP_FFT_HALF_TO_REAL) return;
    in[0].imag(0);
    if (n % 2 == 0) in[n / 2].imag(0);
    for (int64_t i = n / 2 + 1; i < n; ++i) in[i] = std::conj(in[n - i]);
  }

  ep_primitive_desc desc_;
  ep_fft_attributes at_;
};

}  // namespace

Refusal Fft::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const ep_fft_attributes& at = desc.attributes.fft;
  if (at.form < EP_FFT_COMPLEX || at.form > EP_FFT_HALF_TO_REAL) return Refusal::because("form %d", at.form);
  if (desc.operand_count != 2 || desc.operands[0].role != EP_ROLE_DST || desc.operands[1].role != EP_ROLE_SRC)
    return Refusal::because("its operands are not DST and SRC");
  const int32_t dtype = desc.operands[0].dtype;
  if (!is_row_float(dtype) || desc.operands[1].dtype != dtype)
    return Refusal::because("numbers of %s", dtype_name(dtype));
  for (uint32_t i = 0; i < 2; ++i) {
    const bool real = at.form == (i == 0 ? EP_FFT_HALF_TO_REAL : EP_FFT_REAL_TO_HALF);
    if (at.axis < 0 || at.axis >= desc.operands[i].rank - (real ? 0 : 1))
      return Refusal::because("axis %d of rank %d", at.axis, desc.operands[i].rank);
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Fft::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  *out = make_primitive<FftPrimitive>(device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
