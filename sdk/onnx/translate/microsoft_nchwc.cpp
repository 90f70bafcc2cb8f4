// Operators of com.microsoft.nchwc, which ONNX Runtime writes at its highest optimisation level. Their tensors are
// stored in blocks of channels as long as the vectors of the machine. Tenon's values between these operators have the
// plain order of elements, with the channels padded to whole blocks. Only weights, which the file holds in blocks, are
// reordered.
#include "core/ops/ops.h"
#include "core/ops/size_list.h"
#include "primitives/text/format.h"
#include "sdk/onnx/translate/layers.h"
#include "sdk/onnx/translate/microsoft.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

// The channels per block that ONNX Runtime uses on this machine. A file does not say which machine it was written for.
int64_t block_length() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("avx512f") ? 16 : 8;
#else
  return 16;
#endif
}

void check_image(NodeContext& n) {
  if (n.rank(0) != 4) n.invalid(fmt::format("its input has rank {}; it must be 4", n.rank(0)));
}

// Returns weights [o, i, h, w], which are stored as [o / block, i, h, w, block] or with blocks of input channels too.
Tensor plain_weights(NodeContext& n, const Tensor& weights) {
  const int64_t block = block_length(), groups = n.integer("group", 1);
  if (weights.rank() != 4) n.invalid(fmt::format("its weights have shape {}; rank 4 is needed", weights.dims()));
  const Dims& d = weights.dims();
  if (d[0] % block != 0) {
    n.unsupported(
        fmt::format("its weights of shape {} are not in blocks of {} channels, which this machine has; write the model "
                    "at the level 'extended', or on this machine",
                    d, block));
  }
  const bool one_input = groups == 1 ? d[1] < block : d[1] == 1;
  if (one_input) {
    const Tensor blocks = reshape(weights, {d[0] / block, d[1], d[2], d[3], block});
    return reshape(permute(blocks, {0, 4, 1, 2, 3}), d);
  }
  if (d[1] % block != 0) n.invalid(fmt::format("its weights of shape {} are not in blocks of {} channels", d, block));
  const Tensor blocks = reshape(weights, {d[0] / block, d[1] / block, d[2], d[3], block, block});
  return reshape(permute(blocks, {0, 5, 1, 4, 2, 3}), d);
}

TensorList blocked_conv(NodeContext& n) {
  check_image(n);
  Tensor y = conv_of_node(n, n.input(0), contiguous(plain_weights(n, n.input(1))), n.optional(2));
  if (n.has(3)) y = add(y, n.input(3));
  return {activated_by_list(n, y)};
}

TensorList blocked_max_pool(NodeContext& n) {
  check_image(n);
  return {max_pool_of_node(n, n.input(0))};
}

TensorList blocked_average_pool(NodeContext& n) {
  check_image(n);
  return {average_pool_of_node(n, n.input(0))};
}

TensorList blocked_global_average_pool(NodeContext& n) {
  check_image(n);
  return {mean(n.input(0), {2, 3}, true)};
}

TensorList blocked_global_max_pool(NodeContext& n) {
  check_image(n);
  return {amax(n.input(0), {2, 3}, true)};
}

// Pads the channels to whole blocks with zeros.
TensorList reorder_input(NodeContext& n) {
  check_image(n);
  const Tensor x = n.flag("channels_last", false) ? channels_first(n.input(0)) : n.input(0);
  const int64_t missing = -x.dim(1) & (block_length() - 1);
  return {missing == 0 ? x : pad(x, {0, 0, 0, 0, 0, missing})};
}

TensorList reorder_output(NodeContext& n) {
  check_image(n);
  const Tensor& x = n.input(0);
  const int64_t channels = n.integer("channels", 0);
  if (channels < 1 || channels > x.dim(1))
    n.invalid(fmt::format("it cannot take {} channels from an input of shape {}", channels, sizes(x)));
  const Tensor y = channels == x.dim(1) ? x : narrow(x, 1, 0, channels);
  return {n.flag("channels_last", false) ? channels_last(y) : y};
}

constexpr std::string_view kNchwc = "com.microsoft.nchwc";

constexpr Translator kMicrosoftNchwcRows[] = {
    {.domain = kNchwc, .op_type = "AveragePool", .since = 1, .translate = blocked_average_pool},
    {.domain = kNchwc, .op_type = "Conv", .since = 1, .translate = blocked_conv, .why_not = activation_why_not},
    {.domain = kNchwc, .op_type = "GlobalAveragePool", .since = 1, .translate = blocked_global_average_pool},
    {.domain = kNchwc, .op_type = "GlobalMaxPool", .since = 1, .translate = blocked_global_max_pool},
    {.domain = kNchwc, .op_type = "MaxPool", .since = 1, .translate = blocked_max_pool},
    {.domain = kNchwc, .op_type = "ReorderInput", .since = 1, .translate = reorder_input},
    {.domain = kNchwc, .op_type = "ReorderOutput", .since = 1, .translate = reorder_output},
    {.domain = kNchwc, .op_type = "Upsample", .since = 1, .translate = translate_blocked_upsample},
};

}  // namespace

std::span<const Translator> microsoft_nchwc_translators() { return kMicrosoftNchwcRows; }

}  // namespace tenon::onnx
