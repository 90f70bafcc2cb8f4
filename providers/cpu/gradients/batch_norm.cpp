// batch_norm_training and batch_norm_backward, a block of channels at a time (channels.h).
#include <cmath>

#include "providers/cpu/gradients/channels.h"
#include "providers/cpu/gradients/gradients.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

constexpr int64_t lanes = Channels::lanes;

// One number per lane.
template <class T>
struct Lanes {
  T at[lanes] = {};
};

// Adds f(i) for the elements of a chunk to the totals of their lanes; partial sums are in T.
template <class T, class F>
void add_up(int64_t n, Lanes<double>* totals, const F& f) {
  Lanes<T> sums;
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int64_t j = 0; j < lanes; ++j) sums.at[j] += f(i + j, j);
  }
  for (; i < n; ++i) sums.at[i % lanes] += f(i, i % lanes);
  for (int64_t j = 0; j < lanes; ++j) totals->at[j] += static_cast<double>(sums.at[j]);
}

template <class T, class F>
void fill_chunk(int64_t n, T* result, const F& f) {
  int64_t i = 0;
  for (; i + lanes <= n; i += lanes) {
    for (int64_t j = 0; j < lanes; ++j) result[i + j] = f(i + j, j);
  }
  for (; i < n; ++i) result[i] = f(i, i % lanes);
}

template <class T>
class BatchNormPrimitive final : public ep_primitive {
 public:
  BatchNormPrimitive(const ep_device& on, const ep_primitive_desc& desc)
      : desc_(desc),
        backward_(desc.kind == EP_PRIMITIVE_batch_norm_backward),
        format_(desc.operands[0].dtype, on.simd),
        axis_(backward_ ? desc.attributes.batch_norm_backward.axis : desc.attributes.batch_norm_training.axis) {}

  ep_status launch(const ep_launch& launch, ep_fault*, ep_error** error) override {
    if (!backward_ && launch.scalar_count < 1)
      return fail_text(host, error, EP_STATUS_INVALID_ARGUMENT, "batch_norm_training has no launch scalar 0 (eps).");
    Channels walk;
    for (const int32_t role : {EP_ROLE_DST, EP_ROLE_SRC, EP_ROLE_GRADIENT}) {
      const int32_t i = find_operand(desc_, role);
      if (i >= 0) walk.add(shape(launch, i), address_of(launch.operands[i]));
    }
    walk.begin(axis_);
    const int64_t blocks = walk.blocks();
    parallel(device->threads, blocks * walk.positions() * 4, [&](int32_t part, int32_t parts) {
      alignas(64) T buffers[3][Channels::chunk];
      for (int64_t b = blocks * part / parts; b < blocks * (part + 1) / parts; ++b) {
        if (backward_) {
          run_backward(launch, walk, b, buffers);
        } else {
          run_training(launch, walk, b, buffers);
        }
      }
    });
    return EP_STATUS_OK;
  }

 private:
  enum Tensor : int32_t { kDst, kSrc, kGradient };

  OperandShape shape(const ep_launch& launch, int32_t i) const {
    return shape_of(desc_.operands[i], launch.shapes, static_cast<uint32_t>(i));
  }

  // Element `c` of the operand with `role`, or `none` if it is absent.
  double parameter(const ep_launch& launch, int32_t role, int64_t c, double none) const {
    const int32_t i = find_operand(desc_, role);
    if (i < 0) return none;
    const RowFormat format(desc_.operands[i].dtype);
    const char* from = address_of(launch.operands[i]) + c * shape(launch, i).strides[0] * format.size;
    alignas(8) char wide[8];
    double value = 0;
    format.read(wide, 1, from, 1, 1);
    narrow(format.compute, EP_DTYPE_f64)(&value, 1, wide, 1, 1);
    return value;
  }
  void write_parameter(const ep_launch& launch, int32_t role, int64_t c, double value) const {
    const int32_t i = find_operand(desc_, role);
    const int32_t dtype = desc_.operands[i].dtype;
    char* to = address_of(launch.operands[i]) + c * shape(launch, i).strides[0] * dtype_size(dtype);
    narrow(EP_DTYPE_f64, dtype)(to, 1, &value, 1, 1);
  }

  // The parameter for each lane of block `b`.
  Lanes<double> parameters(const ep_launch& launch, const Channels& walk, int64_t b, int32_t role, double none) const {
    Lanes<double> values;
    for (int64_t j = 0; j < lanes; ++j) {
      const bool used = !walk.lane_is_channel() || j < walk.count(b);
      if (used) values.at[j] = parameter(launch, role, walk.first(b) + (walk.lane_is_channel() ? j : 0), none);
    }
    return values;
  }

  // If a block is one channel, adds up its lanes.
  static void unite(const Channels& walk, Lanes<double>* totals) {
    if (walk.lane_is_channel()) return;
    double total = 0;
    for (const double lane : totals->at) total += lane;
    std::fill_n(totals->at, lanes, total);
  }
  static Lanes<T> in_type(const Lanes<double>& values) {
    Lanes<T> result;
    for (int64_t j = 0; j < lanes; ++j) result.at[j] = static_cast<T>(values.at[j]);
    return result;
  }
  // Calls body(chunk, n) with n elements in adjacent lanes.
  template <class Body>
  static void chunks(const Channels& walk, const Body& body) {
    walk.for_each_chunk(
        [&](int64_t run, int64_t start, int64_t n) { body(run, start, n, walk.lane_is_channel() ? n * lanes : n); });
  }

  void run_training(const ep_launch& launch, const Channels& walk, int64_t b, T (*buffers)[Channels::chunk]) const {
    const auto positions = static_cast<double>(walk.positions());
    Lanes<double> mean, inv_std;
    chunks(walk, [&](int64_t run, int64_t start, int64_t rows, int64_t n) {
      const T* x = walk.read(format_, kSrc, b, run, start, rows, buffers[0]);
      add_up<T>(n, &mean, [&](int64_t i, int64_t) { return x[i]; });
    });
    unite(walk, &mean);
    for (double& lane : mean.at) lane /= positions;
    const Lanes<T> m = in_type(mean);
    chunks(walk, [&](int64_t run, int64_t start, int64_t rows, int64_t n) {
      const T* x = walk.read(format_, kSrc, b, run, start, rows, buffers[0]);
      add_up<T>(n, &inv_std, [&](int64_t i, int64_t j) { return (x[i] - m.at[j]) * (x[i] - m.at[j]); });
    });
    unite(walk, &inv_std);
    for (double& lane : inv_std.at) lane = 1.0 / std::sqrt(lane / positions + launch.scalars[0].value.f64);
    Lanes<double> factor = parameters(launch, walk, b, EP_ROLE_SCALE, 1);
    for (int64_t j = 0; j < lanes; ++j) factor.at[j] *= inv_std.at[j];
    const Lanes<T> scale = in_type(factor);
    const Lanes<T> shift = in_type(parameters(launch, walk, b, EP_ROLE_SHIFT, 0));
    chunks(walk, [&](int64_t run, int64_t start, int64_t rows, int64_t n) {
      const T* x = walk.read(format_, kSrc, b, run, start, rows, buffers[0]);
      fill_chunk(n, buffers[1], [&](int64_t i, int64_t j) { return (x[i] - m.at[j]) * scale.at[j] + shift.at[j]; });
      walk.write(format_, kDst, b, run, start, rows, buffers[1]);
    });
    for (int64_t j = 0; j < walk.count(b); ++j) {
      write_parameter(launch, EP_ROLE_MEAN, walk.first(b) + j, mean.at[j]);
      write_parameter(launch, EP_ROLE_INV_STD, walk.first(b) + j, inv_std.at[j]);
    }
  }

  void run_backward(const ep_launch& launch, const Channels& walk, int64_t b, T (*buffers)[Channels::chunk]) const {
    const auto positions = static_cast<double>(walk.positions());
    const Lanes<double> inv_std = parameters(launch, walk, b, EP_ROLE_INV_STD, 1);
    const Lanes<T> m = in_type(parameters(launch, walk, b, EP_ROLE_MEAN, 0));
    const Lanes<T> r = in_type(inv_std);
    Lanes<double> sums, products;
    chunks(walk, [&](int64_t run, int64_t start, int64_t rows, int64_t n) {
      const T* x = walk.read(format_, kSrc, b, run, start, rows, buffers[0]);
      const T* g = walk.read(format_, kGradient, b, run, start, rows, buffers[1]);
      add_up<T>(n, &sums, [&](int64_t i, int64_t) { return g[i]; });
      add_up<T>(n, &products, [&](int64_t i, int64_t j) { return g[i] * ((x[i] - m.at[j]) * r.at[j]); });
    });
    unite(walk, &sums);
    unite(walk, &products);
    Lanes<double> factor = parameters(launch, walk, b, EP_ROLE_SCALE, 1);
    Lanes<T> scale, mean, slope;
    for (int64_t j = 0; j < lanes; ++j) {
      scale.at[j] = static_cast<T>(factor.at[j] * inv_std.at[j]);
      mean.at[j] = static_cast<T>(sums.at[j] / positions);
      slope.at[j] = static_cast<T>(products.at[j] / positions);
    }
    chunks(walk, [&](int64_t run, int64_t start, int64_t rows, int64_t n) {
      const T* x = walk.read(format_, kSrc, b, run, start, rows, buffers[0]);
      const T* g = walk.read(format_, kGradient, b, run, start, rows, buffers[1]);
      fill_chunk(n, buffers[2], [&](int64_t i, int64_t j) {
        return scale.at[j] * (g[i] - mean.at[j] - (x[i] - m.at[j]) * r.at[j] * slope.at[j]);
      });
      walk.write(format_, kDst, b, run, start, rows, buffers[2]);
    });
    for (int64_t j = 0; j < walk.count(b); ++j) {
      write_parameter(launch, EP_ROLE_SCALE_GRADIENT, walk.first(b) + j, products.at[j]);
      write_parameter(launch, EP_ROLE_SHIFT_GRADIENT, walk.first(b) + j, sums.at[j]);
    }
  }

  ep_primitive_desc desc_;
  bool backward_;
  RowFormat format_;
  int32_t axis_;
};

}  // namespace

Refusal BatchNormTraining::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  const bool backward = desc.kind == EP_PRIMITIVE_batch_norm_backward;
  const int32_t dtype = desc.operands[0].dtype;
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* gradient = operand(desc, EP_ROLE_GRADIENT);
  if (desc.operands[0].role != EP_ROLE_DST || src == nullptr || (gradient != nullptr) != backward) {
    return Refusal::because("an operand is missing or superfluous");
  }
  if (src->dtype != dtype || (backward && gradient->dtype != dtype)) return Refusal::because("operands of two types");
  const int32_t axis = backward ? desc.attributes.batch_norm_backward.axis : desc.attributes.batch_norm_training.axis;
  if (axis < 0 || axis >= src->rank) return Refusal::because("axis %d of rank %d", axis, src->rank);
  for (const int32_t role : {EP_ROLE_MEAN, EP_ROLE_INV_STD, EP_ROLE_SCALE_GRADIENT, EP_ROLE_SHIFT_GRADIENT}) {
    const bool wanted = backward || role == EP_ROLE_MEAN || role == EP_ROLE_INV_STD;
    if (wanted && operand(desc, role) == nullptr) return Refusal::because("role %d is missing", role);
  }
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    if (!is_row_float(desc.operands[i].dtype)) return Refusal::because("operand %u is not of floats", i);
  }
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal BatchNormTraining::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out,
                                ep_primitive_info&) {
  if (desc.operands[0].dtype == EP_DTYPE_f64) {
    *out = make_primitive<BatchNormPrimitive<double>>(device, device, desc);
  } else {
    *out = make_primitive<BatchNormPrimitive<float>>(device, device, desc);
  }
  return {};
}

}  // namespace tenon::provider::cpu
