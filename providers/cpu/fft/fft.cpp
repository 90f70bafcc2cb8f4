#include "providers/cpu/fft/fft.h"

#include <algorithm>
#include <memory>
#include <mutex>
#include <vector>

#include "providers/cpu/fft/kernel.h"
#include "providers/cpu/fft/line.h"
#include "providers/cpu/rows/row.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

// One operand: its lines along the axis, of real numbers or of pairs.
template <class T>
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

  // The numbers of a line, in place or in `copy`.
  const T* fetch(int64_t line, T* copy) const {
    if (in_place()) return reinterpret_cast<const T*>(place(line));
    const int64_t step = real ? 1 : 2;
    for (int64_t half = 0; half < step; ++half) {
      format.read(copy + half, step, place(line) + half * pair * format.size, stride, length);
    }
    return copy;
  }
  // Where the results of a line are made: in place or in `copy`, which put() stores.
  T* results(int64_t line, T* copy) const { return in_place() ? reinterpret_cast<T*>(place(line)) : copy; }
  void put(int64_t line, const T* copy) const {
    if (in_place()) return;
    const int64_t step = real ? 1 : 2;
    for (int64_t half = 0; half < step; ++half) {
      format.write(place(line) + half * pair * format.size, stride, copy + half, step, length);
    }
  }
};

// The plans of the last lengths.
template <class Plan>
class Plans {
 public:
  template <class Make>
  std::shared_ptr<const Plan> of(int64_t n, const Make& make) {
    const std::lock_guard lock(mutex_);
    const auto found = std::find_if(plans_.begin(), plans_.end(), [&](const Kept& kept) { return kept.n == n; });
    if (found == plans_.end()) {
      int64_t total = n;
      for (const Kept& kept : plans_) total += kept.n;
      for (; !plans_.empty() && (plans_.size() == most || total > longest); plans_.pop_back()) total -= plans_.back().n;
      plans_.insert(plans_.begin(), {n, make()});
    } else {
      std::rotate(plans_.begin(), found, found + 1);
    }
    return plans_.front().plan;
  }

 private:
  static constexpr size_t most = 8;
  static constexpr int64_t longest = int64_t{1} << 20;  // sum of all kept lengths; one may be longer

  struct Kept {
    int64_t n;
    std::shared_ptr<const Plan> plan;
  };
  std::mutex mutex_;
  std::vector<Kept> plans_;
};

// Computes in T. Lines that are not contiguous are copied.
template <class T>
class FftPrimitive final : public ep_primitive {
 public:
  FftPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        at_(desc.attributes.fft),
        level_(on.simd),
        kernels_(fft_kernels<T>(on.simd)),
        form_(form_of(at_.form)),
        inverse_(at_.inverse != 0),
        threads_(on.threads) {}

  uint64_t workspace(const ep_shape* shapes) const override {
    const uint32_t real = form_ == FftForm::REAL_TO_HALF ? 1 : 0;
    const OperandShape shape = shape_of(desc_.operands[real], shapes, real);
    const int64_t n = shape.dims[at_.axis];
    int64_t lines = 1;
    for (int32_t i = 0; i < shape.rank - (form_ == FftForm::COMPLEX ? 1 : 0); ++i) {
      if (i != at_.axis) lines *= shape.dims[i];
    }
    if (lines == 0 || n == 0) return 0;
    const Facts facts = facts_of(n);
    const int64_t numbers = side_by_side(facts, lines) ? threads_ * room_together(n)
                            : wide_lines(lines)        ? room_of_line(facts, n, threads_)
                                                       : threads_ * room_of_line(facts, n, 1);
    return static_cast<uint64_t>(numbers) * sizeof(T);
  }
  bool has_workspace() const override { return true; }

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    if (launch.scalar_count < 1) {
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "fft has no launch scalar 0, the factor.");
    }
    const auto scale = static_cast<T>(launch.scalars[0].value.f64);
    const Lines<T> dst(launch, desc_, 0, form_ == FftForm::HALF_TO_REAL, at_.axis);
    const Lines<T> src(launch, desc_, 1, form_ == FftForm::REAL_TO_HALF, at_.axis);
    const int64_t n = form_ == FftForm::REAL_TO_HALF ? src.length : dst.length, lines = dst.outer.count();
    if (lines == 0 || n == 0) return EP_STATUS_OK;
    T* const workspace = reinterpret_cast<T*>(address_of(launch.workspace));
    const Facts facts = facts_of(n);
    if (side_by_side(facts, lines)) {
      run_together(facts, dst, src, n, scale, workspace);
    } else {
      run_lines(facts, dst, src, n, scale, workspace);
    }
    return EP_STATUS_OK;
  }

 private:
  static FftForm form_of(int32_t form) {
    if (form == EP_FFT_REAL_TO_HALF) return FftForm::REAL_TO_HALF;
    return form == EP_FFT_HALF_TO_REAL ? FftForm::HALF_TO_REAL : FftForm::COMPLEX;
  }

  // A real line of even length is transformed as half as many pairs.
  bool halves(int64_t n) const { return form_ != FftForm::COMPLEX && n % 2 == 0; }
  int64_t length_of(int64_t n) const { return halves(n) ? n / 2 : n; }
  std::vector<T> roots_of(int64_t n) const { return halves(n) ? half_roots<T>(n / 2) : std::vector<T>(); }

  // The shape and the estimated times of a length, in nanoseconds.
  struct Facts {
    LineShape line;
    double line_time;   // a line by itself
    double group_time;  // as many lines as a vector has lanes, together; 0: not possible
  };
  Facts facts_of(int64_t n) const {
    return *facts_.of(n, [&] {
      const int64_t length = length_of(n);
      const LineShape shape = line_shape(length, kernels_.lanes, sizeof(T));
      const double rest = (form_ == FftForm::COMPLEX ? 0 : 0.3) * static_cast<double>(n);
      const bool has_plan = length > 1 && shape.padded == length;
      return std::make_shared<const Facts>(
          Facts{shape, shape.time + rest, has_plan ? fft_call_time(length, kernels_.lanes, sizeof(T)) : 0});
    });
  }

  // ---- several lines in the lanes of a vector ----

  int64_t groups(int64_t lines) const { return (lines + kernels_.lanes - 1) / kernels_.lanes; }

  // True if lines are transformed together, false if one by one.
  bool side_by_side(const Facts& facts, int64_t lines) const {
    if (facts.group_time == 0) return false;
    return static_cast<double>(groups(lines)) * facts.group_time < static_cast<double>(lines) * facts.line_time;
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
  int64_t room_together(int64_t n) const { return 8 * (n + 2) * kernels_.lanes; }

  struct Together {
    FftPlan<T> plan;
    std::vector<T> half_roots;  // empty unless a line is transformed as half as many pairs
  };

  void run_together(const Facts& facts, const Lines<T>& dst, const Lines<T>& src, int64_t n, T scale, T* workspace) {
    const int64_t lines = dst.outer.count(), all = groups(lines), lanes = kernels_.lanes;
    const std::shared_ptr<const Together> together = plans_.of(n, [&] {
      return std::make_shared<const Together>(Together{FftPlan<T>(length_of(n)), roots_of(n)});
    });
    const T* const half_roots = together->half_roots.empty() ? nullptr : together->half_roots.data();
    const auto work = static_cast<int64_t>(static_cast<double>(all) * facts.group_time);
    parallel(threads_, work, [&](int32_t part, int32_t parts) {
      T* const numbers = workspace + runner() * room_together(n);
      const int64_t each = 2 * (n + 2) * lanes;
      Room room = {numbers, numbers + 2 * each, numbers + 3 * each, std::vector<const T*>(static_cast<size_t>(lanes)),
                   std::vector<T*>(static_cast<size_t>(lanes))};
      for (int64_t group = all * part / parts; group < all * (part + 1) / parts; ++group) {
        const int64_t first = group * lanes;
        const int64_t count = std::min(lanes, lines - first);
        const bool reads = count == lanes && src.beside(first, count);
        const bool writes = count == lanes && dst.beside(first, count);
        if (reads) {
          room.sources[0] = reinterpret_cast<const T*>(src.place(first));
        } else {
          read(src, first, count, &room);
        }
        if (writes) {
          room.results[0] = reinterpret_cast<T*>(dst.place(first));
        } else {
          place(dst, first, count, &room);
        }
        kernels_.run(together->plan, {room.sources.data(), room.results.data(), form_, inverse_, scale, room.work,
                                      reads ? src.stride : 0, writes ? dst.stride : 0, half_roots});
        for (int64_t l = 0; l < count && !writes; ++l) dst.put(first + l, room.results[static_cast<size_t>(l)]);
      }
    });
  }

  void read(const Lines<T>& src, int64_t first, int64_t count, Room* room) const {
    for (size_t l = 0; l < room->sources.size(); ++l) {
      const auto number = static_cast<int64_t>(l);
      // Unused lanes repeat the last line.
      room->sources[l] = number < count ? src.fetch(first + number, room->read + number * src.numbers())
                                        : room->sources[static_cast<size_t>(count - 1)];
    }
  }
  void place(const Lines<T>& dst, int64_t first, int64_t count, Room* room) const {
    for (size_t l = 0; l < room->results.size(); ++l) {
      const auto number = static_cast<int64_t>(l);
      T* const copy = room->written + (dst.in_place() ? 0 : number * dst.numbers());
      room->results[l] = number < count ? dst.results(first + number, copy) : copy;
    }
  }

  // ---- one line after the other ----

  struct Single {
    LinePlan<T> plan;
    std::vector<T> roots;  // FftHalves::roots
  };

  // True if all threads share each line.
  bool wide_lines(int64_t lines) const { return lines < threads_; }
  // Numbers of workspace: two buffers for a line, and what its transform needs.
  static int64_t room_of_line(const Facts& facts, int64_t n, int32_t threads) {
    return 4 * (n + 2) + facts.line.room(threads);
  }

  void run_lines(const Facts& facts, const Lines<T>& dst, const Lines<T>& src, int64_t n, T scale, T* workspace) {
    const int64_t lines = dst.outer.count();
    const std::shared_ptr<const Single> single = singles_.of(n, [&] {
      return std::make_shared<const Single>(Single{LinePlan<T>(level_, facts.line), roots_of(n)});
    });
    if (wide_lines(lines)) {
      for (int64_t i = 0; i < lines; ++i) run_line(*single, dst, src, n, i, scale, workspace, threads_);
      return;
    }
    const auto work = static_cast<int64_t>(static_cast<double>(lines) * facts.line_time);
    parallel(threads_, work, [&](int32_t part, int32_t parts) {
      T* const room = workspace + runner() * room_of_line(facts, n, 1);
      for (int64_t i = lines * part / parts; i < lines * (part + 1) / parts; ++i) {
        run_line(*single, dst, src, n, i, scale, room, 1);
      }
    });
  }

  void run_line(const Single& single, const Lines<T>& dst, const Lines<T>& src, int64_t n, int64_t i, T scale, T* room,
                int32_t threads) const {
    T* const first = room;
    T* const second = room + 2 * (n + 2);
    T* const rest = room + 4 * (n + 2);
    const LinePlan<T>& plan = single.plan;
    const T* from = src.fetch(i, first);
    if (form_ == FftForm::COMPLEX) {
      T* const to = dst.results(i, second);
      plan.transform(from, to, inverse_, scale, rest, threads);
      return dst.put(i, to);
    }
    const FftHalves<T> halved = {n / 2, single.roots.data(), inverse_, form_ == FftForm::REAL_TO_HALF ? scale : T{1}};
    if (form_ == FftForm::REAL_TO_HALF) {
      if (!halves(n)) from = widen(from, n, first);
      plan.transform(from, second, inverse_, halves(n) ? T{1} : scale, rest, threads);
      T* const to = dst.results(i, first);
      if (halves(n)) {
        kernels_.split(halved, second, to);
      } else {
        second[1] = 0;
        std::copy_n(second, 2 * (n / 2 + 1), to);
      }
      return dst.put(i, to);
    }
    if (halves(n)) {
      kernels_.join(halved, from, second);
      T* const to = dst.results(i, first);
      plan.transform(second, to, inverse_, scale, rest, threads);
      return dst.put(i, to);
    }
    mirror(from, n, second);
    plan.transform(second, first, inverse_, scale, rest, threads);
    T* const to = dst.results(i, second);
    for (int64_t j = 0; j < n; ++j) to[j] = first[2 * j];
    dst.put(i, to);
  }

  // Writes n real numbers as pairs to `to`, which may begin where they do.
  static const T* widen(const T* from, int64_t n, T* to) {
    for (int64_t j = n - 1; j >= 0; --j) {
      to[2 * j] = from[j];
      to[2 * j + 1] = 0;
    }
    return to;
  }
  // Writes the whole spectrum of a real line of odd length.
  static void mirror(const T* from, int64_t n, T* to) {
    to[0] = from[0];
    to[1] = 0;
    for (int64_t k = 1; k <= n / 2; ++k) {
      to[2 * k] = to[2 * (n - k)] = from[2 * k];
      to[2 * k + 1] = from[2 * k + 1];
      to[2 * (n - k) + 1] = -from[2 * k + 1];
    }
  }

  ep_primitive_desc desc_;
  ep_fft_attributes at_;
  SimdLevel level_;
  FftKernels<T> kernels_;
  FftForm form_;
  bool inverse_;
  int32_t threads_;
  mutable Plans<Facts> facts_;
  Plans<Together> plans_;
  Plans<Single> singles_;
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
  if (compute_dtype(desc.operands[0].dtype) == EP_DTYPE_f64) {
    *out = make_primitive<FftPrimitive<double>>(device, device, desc);
  } else {
    *out = make_primitive<FftPrimitive<float>>(device, device, desc);
  }
  return {};
}

}  // namespace tenon::provider::cpu
