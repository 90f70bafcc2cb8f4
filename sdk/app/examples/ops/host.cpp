// Ops that are functions on the host. They get row-major tensors on the host, for calls on any device.
#include <curves/gradients.h>
#include <curves/host.h>
#include <curves/ops.h>
#include <curves/rules.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

namespace curves {
namespace host {
namespace {

using tenon::library::HostTensor;
using tenon::library::HostTensors;

template <class T>
void clip(const HostTensor& input, T limit, const HostTensor& output) {
  const std::span<const T> from = input.span<const T>();
  std::transform(from.begin(), from.end(), output.span<T>().begin(), [=](T x) { return limit * std::tanh(x / limit); });
}

}  // namespace

void soft_clip(HostTensors outputs, const HostTensor& input, double limit) {
  if (input.dtype == DType::f64) return clip<double>(input, limit, outputs[0]);
  clip<float>(input, static_cast<float>(limit), outputs[0]);
}

struct StaircaseState {
  std::vector<float> levels;
};

std::shared_ptr<StaircaseState> make_staircase_state(const StaircaseAttributes& attributes) {
  if (attributes.levels < 2) {
    throw tenon::Error(tenon::Code::invalid_argument,
                       "curves::staircase: levels is " + std::to_string(attributes.levels) + "; it must be 2 or more.");
  }
  auto state = std::make_shared<StaircaseState>();
  for (int64_t i = 0; i < attributes.levels; ++i) {
    state->levels.push_back(-1.0f + 2.0f * static_cast<float>(i) / static_cast<float>(attributes.levels - 1));
  }
  return state;
}

void staircase(HostTensors outputs, StaircaseState& state, const HostTensor& input, int64_t) {
  const auto nearest = [&](float x) {
    return *std::min_element(state.levels.begin(), state.levels.end(),
                             [x](float a, float b) { return std::abs(a - x) < std::abs(b - x); });
  };
  const std::span<const float> from = input.span<const float>();
  std::transform(from.begin(), from.end(), outputs[0].span<float>().begin(), nearest);
}

void nearest_point(HostTensors outputs, const HostTensor& points, const HostTensor& queries) {
  const std::span<const float> all = points.span<const float>(), asked = queries.span<const float>();
  const auto width = static_cast<size_t>(points.dims[1]);
  for (size_t q = 0; q < outputs[0].span<float>().size(); ++q) {
    float best = std::numeric_limits<float>::infinity();
    for (size_t p = 0; p * width < all.size(); ++p) {
      float distance = 0;
      for (size_t i = 0; i < width; ++i) {
        const float apart = asked[q * width + i] - all[p * width + i];
        distance += apart * apart;
      }
      if (distance >= best) continue;
      best = distance;
      outputs[1].span<int64_t>()[q] = static_cast<int64_t>(p);
    }
    outputs[0].span<float>()[q] = best;
  }
}

}  // namespace host

namespace ops {

// Returns shapes and dtypes of the results. A rule works for sizes that are numbers and for sizes that are expressions.
template <class Call>
Status infer_nearest_point(const Call& call, typename Call::Meta* outputs) {
  const auto& points = call.inputs[0]->dims();
  const auto& queries = call.inputs[1]->dims();
  if (call.inputs[1]->dtype() != DType::f32 || points.rank() != 2 || queries.rank() != 2 ||
      !expect(points[1] == queries[1]) || !expect(points[0] >= 1)) {
    return Status(Code::invalid_argument,
                  "curves::nearest_point: points and queries must be f32 matrices with as many columns, "
                  "not of shape " +
                      to_string(points) + " and " + to_string(queries) + ".");
  }
  outputs[0].dtype = DType::f32;
  outputs[1].dtype = DType::i64;
  for (int i = 0; i < 2; ++i) outputs[i].dims = {queries[0]};
  return {};
}
template Status infer_nearest_point(const OpCall&, TensorMeta*);
template Status infer_nearest_point(const SymCall&, SymMeta*);

}  // namespace ops

namespace gradients {

// The gradient of the squared distance to the nearest point: 2 (query - point) for the query, and the negative for that
// point.
void nearest_point(const autograd::OpGradient& b) {
  const Tensor points = b.input(0), index = b.result(1);
  const Tensor apart = (b.input(1) - tenon::index_select(points, 0, index)) * tenon::unsqueeze(b.grad(0) * 2, 1);
  if (b.wants(0)) b.give(0, tenon::index_add(tenon::zeros_like(points), 0, index, -apart));
  if (b.wants(1)) b.give(1, apart);
}

}  // namespace gradients
}  // namespace curves
