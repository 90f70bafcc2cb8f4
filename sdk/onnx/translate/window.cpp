// Window functions: sums of cosines over the positions.
#include <cmath>
#include <numbers>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/tensors/tensor_data.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

// a0 - a1 cos(2 pi i / n) + a2 cos(4 pi i / n). n is the size, minus one if the window is symmetric.
TensorList window(NodeContext& n, double a0, double a1, double a2) {
  const int64_t size = n.scalar(0).to_int();
  if (size < 0 || size > int64_t{1} << 24) n.invalid(fmt::format("its size is {}; 0 to 2^24 is possible", size));
  const DType dtype = dtype_of_onnx(static_cast<int32_t>(n.integer("output_datatype", 1)));
  if (dtype == DType::none) n.unsupported("its output_datatype is one that Tenon does not have");
  const double period = static_cast<double>(n.flag("periodic", true) ? size : std::max<int64_t>(1, size - 1));
  const Tensor angle = mul(arange(Scalar(size), DType::f32, n.device()), Scalar(2.0 * std::numbers::pi / period));
  Tensor values = add(mul(cos(angle), Scalar(-a1)), Scalar(a0));
  if (a2 != 0) values = add(values, mul(cos(mul(angle, Scalar(2.0))), Scalar(a2)));
  return {cast(values, dtype)};
}

TensorList blackman(NodeContext& n) { return window(n, 0.42, 0.5, 0.08); }
TensorList hamming(NodeContext& n) { return window(n, 25.0 / 46.0, 21.0 / 46.0, 0.0); }
TensorList hann(NodeContext& n) { return window(n, 0.5, 0.5, 0.0); }

constexpr Translator kWindowRows[] = {
    {.op_type = "BlackmanWindow", .since = 17, .translate = blackman},
    {.op_type = "HammingWindow", .since = 17, .translate = hamming},
    {.op_type = "HannWindow", .since = 17, .translate = hann},
};

}  // namespace

std::span<const Translator> window_translators() { return kWindowRows; }

}  // namespace tenon::onnx
