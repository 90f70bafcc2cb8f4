#include "providers/cpu/fft/fft.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <kissfft/kissfft.hh>
#include <memory>
#include <mutex>
#include <vector>

#include "providers/cpu/fft/kernel.h"
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

  // Whether the numbers of a line, of pairs both parts, lie one after the other in the type of computation.
  bool in_place() const { return format.same && (real ? stride == 1 : stride == 2 && pair == 1); }
  int64_t numbers() const { return real ? length : 2 * length; }

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

// The transform of lines side by side, in f32 or f64. Lines that are not contiguous go through a copy.
template <class T>
class SideBySide {
 public:
  SideBySide(const ep_device& on, const ep_fft_attributes& at)
      : kernels_(fft_kernels<T>(on.simd)), form_(form_of(at.form)), inverse_(at.inverse != 0) {}

  // False if these lines are better transformed one by one.
  bool run(int32_t threads, const Lines& dst, const Lines& src, int64_t n, double scale) {
    constexpr int64_t longest = 16384;  // whose lines side by side fit the second cache
    const int64_t lines = dst.outer.count();
    if (lines < 3 || n > longest) return false;
    const std::shared_ptr<const FftPlan<T>> plan = plan_for(n);
    if (!plan->usable()) return false;
    const int64_t together = form_ == FftForm::COMPLEX ? kernels_.lanes : 2 * kernels_.lanes;
    const int64_t groups = (lines + together - 1) / together;
    const auto each = static_cast<double>(n) * std::log2(static_cast<double>(n)) / 4;
    parallel(threads, static_cast<int64_t>(each) * lines, [&](int32_t part, int32_t parts) {
      Room room(n, kernels_.lanes, together, dst, src);
      for (int64_t group = groups * part / parts; group < groups * (part + 1) / parts; ++group) {
        const int64_t first = group * together;
        read(src, first, std::min(together, lines - first), &room);
        place(dst, first, std::min(together, lines - first), &room);
        kernels_.run(*plan, {room.sources.data(), room.results.data(), form_, inverse_, static_cast<T>(scale),
                             room.work.data()});
        write(dst, first, std::min(together, lines - first), room);
      }
    });
    return true;
  }

 private:
  // Of one thread.
  struct Room {
    std::vector<T> work, read, written;
    std::vector<const T*> sources;
    std::vector<T*> results;

    Room(int64_t n, int64_t lanes, int64_t together, const Lines& dst, const Lines& src)
        : work(static_cast<size_t>(4 * (n + 2) * lanes)),
          read(static_cast<size_t>(src.numbers() * (src.in_place() ? 1 : together))),
          written(static_cast<size_t>(dst.numbers() * (dst.in_place() ? 1 : together))),
          sources(static_cast<size_t>(together)),
          results(static_cast<size_t>(together)) {}
  };

  static FftForm form_of(int32_t form) {
    if (form == EP_FFT_REAL_TO_HALF) return FftForm::REAL_TO_HALF;
    return form == EP_FFT_HALF_TO_REAL ? FftForm::HALF_TO_REAL : FftForm::COMPLEX;
  }

  std::shared_ptr<const FftPlan<T>> plan_for(int64_t n) {
    const std::lock_guard lock(mutex_);
    if (plan_ == nullptr || plan_->length != n) plan_ = std::make_shared<const FftPlan<T>>(n);
    return plan_;
  }

  void read(const Lines& src, int64_t first, int64_t count, Room* room) const {
    const auto together = static_cast<int64_t>(room->sources.size());
    for (int64_t l = 0; l < together; ++l) {
      const int64_t line = first + std::min(l, count - 1);  // lanes without a line repeat the last
      auto& to = room->sources[static_cast<size_t>(l)];
      if (src.in_place()) {
        to = reinterpret_cast<const T*>(src.place(line));
        continue;
      }
      T* const copy = room->read.data() + l * src.numbers();
      to = copy;
      if (l >= count) {
        to = room->sources[static_cast<size_t>(count - 1)];
        continue;
      }
      const int64_t step = src.real ? 1 : 2;
      for (int64_t half = 0; half < step; ++half) {
        const char* const from = src.place(line) + half * src.pair * src.format.size;
        src.format.read(copy + half, step, from, src.stride, src.length);
      }
    }
  }
  void place(const Lines& dst, int64_t first, int64_t count, Room* room) const {
    for (size_t l = 0; l < room->results.size(); ++l) {
      const auto number = static_cast<int64_t>(l);
      const bool in_place = dst.in_place() && number < count;
      room->results[l] = in_place ? reinterpret_cast<T*>(dst.place(first + number))
                                  : room->written.data() + (dst.in_place() ? 0 : number * dst.numbers());
    }
  }
  void write(const Lines& dst, int64_t first, int64_t count, const Room& room) const {
    if (dst.in_place()) return;
    const int64_t step = dst.real ? 1 : 2;
    for (int64_t l = 0; l < count; ++l) {
      for (int64_t half = 0; half < step; ++half) {
        char* const to = dst.place(first + l) + half * dst.pair * dst.format.size;
        dst.format.write(to, dst.stride, room.results[static_cast<size_t>(l)] + half, step, dst.length);
      }
    }
  }

  FftKernels<T> kernels_;
  FftForm form_;
  bool inverse_;
  std::mutex mutex_;
  std::shared_ptr<const FftPlan<T>> plan_;
};

class FftPrimitive final : public ep_primitive {
 public:
  FftPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc), at_(desc.attributes.fft), floats_(on, at_), doubles_(on, at_) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    if (launch.scalar_count < 1) {
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "fft has no launch scalar 0, the factor.");
    }
    const double scale = launch.scalars[0].value.f64;
    const Lines dst(launch, desc_, 0, at_.form == EP_FFT_HALF_TO_REAL, at_.axis);
    const Lines src(launch, desc_, 1, at_.form == EP_FFT_REAL_TO_HALF, at_.axis);
    const int64_t n = at_.form == EP_FFT_REAL_TO_HALF ? src.length : dst.length;
    const bool wide = dst.format.compute == EP_DTYPE_f64;
    if (wide ? doubles_.run(device->threads, dst, src, n, scale) : floats_.run(device->threads, dst, src, n, scale)) {
      return EP_STATUS_OK;
    }
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
  SideBySide<float> floats_;
  SideBySide<double> doubles_;
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
  *out = make_primitive<FftPrimitive>(device, device, desc);
  return {};
}

}  // namespace tenon::provider::cpu
