#include "providers/cpu/fft/fft.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <mutex>
#include <vector>

#include "providers/cpu/fft/kernel.h"
#include "providers/cpu/fft/line.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

using Complex = LinePlan::Complex;

// One operand: its lines along the axis, of real numbers or of pairs.
struct Lines {
  RowFormat format;
  char* base = nullptr;
  Axes outer;
  int64_t length = 0;
  int64_t stride = 0;
  int64_t pair = 0;  // distance between real and imaginary part
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

  // True if a line is contiguous in the type of computation.
  bool in_place() const { return format.same && (real ? stride == 1 : stride == 2 && pair == 1); }
  int64_t numbers() const { return real ? length : 2 * length; }
  // True if `count` lines starting at `first` are adjacent in the type of computation.
  bool beside(int64_t first, int64_t count) const {
    if (!format.same || in_place() || stride <= 0 || (!real && pair != 1)) return false;
    const int64_t begin = outer.offset(first), step = real ? 1 : 2;
    for (int64_t l = 1; l < count; ++l) {
      if (outer.offset(first + l) != begin + l * step) return false;
    }
    return true;
  }

  char* place(int64_t line) const { return base + outer.offset(line) * format.size; }

  // Reads part 0 (real) or 1 (imaginary) of all elements of a line, through the buffer.
  void read(int64_t line, int64_t part, std::vector<char>* buffer, double* values, int64_t step) const {
    format.read(buffer->data(), 1, place(line) + part * pair * format.size, stride, length);
    narrow(format.compute, EP_DTYPE_f64)(values, step, buffer->data(), 1, length);
  }
  void write(int64_t line, int64_t part, const double* values, int64_t step) const {
    narrow(EP_DTYPE_f64, format.dtype)(place(line) + part * pair * format.size, stride, values, step, length);
  }
};

// Transforms several lines together, in f32 or f64. Lines that are not contiguous are copied.
template <class T>
class SideBySide {
 public:
  SideBySide(const ep_device& on, const ep_fft_attributes& at)
      : kernels_(fft_kernels<T>(on.simd)), form_(form_of(at.form)), inverse_(at.inverse != 0) {}

  uint64_t workspace(int32_t threads, int64_t lines, int64_t n) const {
    return pays(lines, n) ? static_cast<uint64_t>(threads * room_of(n)) * sizeof(T) : 0;
  }

  // Returns false if these lines are better transformed one by one.
  bool run(int32_t threads, const Lines& dst, const Lines& src, int64_t n, double scale, const ep_launch& launch) {
    const int64_t lines = dst.outer.count();
    if (!pays(lines, n)) return false;
    T* const workspace = reinterpret_cast<T*>(address_of(launch.workspace));
    const std::shared_ptr<const FftPlan<T>> plan = plan_for(n);
    const int64_t together = form_ == FftForm::COMPLEX ? kernels_.lanes : 2 * kernels_.lanes;
    const int64_t groups = (lines + together - 1) / together;
    const auto each = static_cast<double>(n) * std::log2(static_cast<double>(n)) / 4;
    parallel(threads, static_cast<int64_t>(each) * lines, [&](int32_t part, int32_t parts) {
      T* const numbers = workspace + runner() * room_of(n);
      const int64_t half = 4 * (n + 2) * kernels_.lanes;
      Room room = {numbers, numbers + half, numbers + 2 * half, std::vector<const T*>(static_cast<size_t>(together)),
                   std::vector<T*>(static_cast<size_t>(together))};
      for (int64_t group = groups * part / parts; group < groups * (part + 1) / parts; ++group) {
        const int64_t first = group * together;
        const int64_t count = std::min(together, lines - first);
        const bool reads = count == together && src.beside(first, count);
        const bool writes = count == together && dst.beside(first, count);
        for (int64_t l = 0; l < together; l += kernels_.lanes) {
          if (reads) room.sources[static_cast<size_t>(l)] = reinterpret_cast<const T*>(src.place(first + l));
          if (writes) room.results[static_cast<size_t>(l)] = reinterpret_cast<T*>(dst.place(first + l));
        }
        if (!reads) read(src, first, count, &room);
        if (!writes) place(dst, first, count, &room);
        kernels_.run(*plan, {room.sources.data(), room.results.data(), form_, inverse_, static_cast<T>(scale),
                             room.work, reads ? src.stride : 0, writes ? dst.stride : 0});
        if (!writes) write(dst, first, count, room);
      }
    });
    return true;
  }

 private:
  static bool pays(int64_t lines, int64_t n) {
    constexpr int64_t longest = 16384;  // longest lines that fit in the L2 cache together
    return lines >= 3 && n <= longest && has_fft_plan(n);
  }

  // The buffers of one thread.
  struct Room {
    T* work;
    T* read;
    T* written;
    std::vector<const T*> sources;
    std::vector<T*> results;
  };
  // Numbers of workspace per thread: for the transform, and for copies of the lines.
  int64_t room_of(int64_t n) const { return (4 * (n + 2) + 8 * (n + 2)) * kernels_.lanes; }

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
      const int64_t line = first + std::min(l, count - 1);  // unused lanes repeat the last line
      auto& to = room->sources[static_cast<size_t>(l)];
      if (src.in_place()) {
        to = reinterpret_cast<const T*>(src.place(line));
        continue;
      }
      T* const copy = room->read + l * src.numbers();
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
                                  : room->written + (dst.in_place() ? 0 : number * dst.numbers());
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
      : desc_(desc), at_(desc.attributes.fft), floats_(on, at_), doubles_(on, at_), threads_(on.threads) {}

  uint64_t workspace(const ep_shape* shapes) const override {
    const uint32_t real = at_.form == EP_FFT_REAL_TO_HALF ? 1 : 0;
    const OperandShape shape = shape_of(desc_.operands[real], shapes, real);
    const int64_t n = shape.dims[at_.axis];
    int64_t lines = 1;
    for (int32_t i = 0; i < shape.rank - (at_.form == EP_FFT_COMPLEX ? 1 : 0); ++i) {
      if (i != at_.axis) lines *= shape.dims[i];
    }
    return is_wide() ? doubles_.workspace(threads_, lines, n) : floats_.workspace(threads_, lines, n);
  }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    if (launch.scalar_count < 1) {
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "fft has no launch scalar 0, the factor.");
    }
    const double scale = launch.scalars[0].value.f64;
    const Lines dst(launch, desc_, 0, at_.form == EP_FFT_HALF_TO_REAL, at_.axis);
    const Lines src(launch, desc_, 1, at_.form == EP_FFT_REAL_TO_HALF, at_.axis);
    const int64_t n = at_.form == EP_FFT_REAL_TO_HALF ? src.length : dst.length;
    if (is_wide() ? doubles_.run(threads_, dst, src, n, scale, launch)
                  : floats_.run(threads_, dst, src, n, scale, launch)) {
      return EP_STATUS_OK;
    }
    const std::shared_ptr<const LinePlan> plan = plan_for(n);
    const int64_t lines = dst.outer.count();
    parallel(device->threads, lines * static_cast<int64_t>(plan->steps()), [&](int32_t part, int32_t parts) {
      LinePlan::Room room(*plan);
      std::vector<char> buffer(static_cast<size_t>(n) * 8);
      std::vector<Complex> in(static_cast<size_t>(n));
      std::vector<Complex> out(static_cast<size_t>(n));
      for (int64_t line = lines * part / parts; line < lines * (part + 1) / parts; ++line) {
        read(src, line, n, &buffer, in.data());
        plan->transform(in.data(), out.data(), &room);
        for (Complex& each_out : out) each_out *= scale;
        const auto* const values = reinterpret_cast<const double*>(out.data());
        dst.write(line, 0, values, 2);
        if (!dst.real) dst.write(line, 1, values + 1, 2);
      }
    });
    return EP_STATUS_OK;
  }

 private:
  bool is_wide() const { return compute_dtype(desc_.operands[0].dtype) == EP_DTYPE_f64; }

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

  std::shared_ptr<const LinePlan> plan_for(int64_t n) {
    const std::lock_guard lock(mutex_);
    if (plan_ == nullptr || plan_->length() != n) plan_ = std::make_shared<const LinePlan>(n, at_.inverse != 0);
    return plan_;
  }

  ep_primitive_desc desc_;
  ep_fft_attributes at_;
  SideBySide<float> floats_;
  SideBySide<double> doubles_;
  int32_t threads_;
  std::mutex mutex_;
  std::shared_ptr<const LinePlan> plan_;
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
