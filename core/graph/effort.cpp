#include "core/graph/effort.h"

#include <algorithm>

#include "ep_api/ep_api.h"

namespace tenon::graph {
namespace {

constexpr double kFlopsOfMap = 16;  // operations per element, as for exp or tanh

double count(const Dims& dims) { return static_cast<double>(element_count(dims)); }

// The length of the axis `axis` counted from the end.
double axis_of(const Dims& dims, int32_t axis) {
  return dims.rank() < axis ? 1.0 : std::max(1.0, static_cast<double>(dims[dims.rank() - axis]));
}

}  // namespace

double flops_of(const OpInfo& op, std::span<const Dims> inputs, const Dims& made) {
  const auto input = [&](size_t i) { return i < inputs.size() ? inputs[i] : Dims{0}; };
  switch (op.kind) {
    case EP_PRIMITIVE_matmul: return 2 * count(made) * axis_of(input(0), 1);
    case EP_PRIMITIVE_attention: return 4 * count(input(0)) * axis_of(input(1), 2);
    case EP_PRIMITIVE_convolution: return 2 * count(made) * count(input(1)) / axis_of(input(1), input(1).rank());
    case EP_PRIMITIVE_convolution_weight:
      return 2 * std::max(count(input(0)), count(input(1))) * count(made) / axis_of(made, made.rank());
    default: break;
  }
  double most = count(made);
  for (const Dims& dims : inputs) most = std::max(most, count(dims));
  return kFlopsOfMap * most;
}

}  // namespace tenon::graph
