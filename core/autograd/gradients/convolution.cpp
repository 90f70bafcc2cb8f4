// Convolution and its transpose.
#include "core/ops/attributes.h"
#include "core/ops/gradients.h"
#include "core/ops/operators.h"

namespace tenon::gradients {
namespace {

Dims numbers(const int64_t* first, int32_t count) { return Dims(std::span(first, static_cast<size_t>(count))); }

// The window of a convolution, as arguments of conv.
struct Window {
  explicit Window(const ep_convolution_attributes& of)
      : stride(numbers(of.stride, of.spatial_rank)),
        dilation(numbers(of.dilation, of.spatial_rank)),
        padding(numbers(of.pad_low, of.spatial_rank)),
        groups(of.groups) {
    for (int32_t i = 0; i < of.spatial_rank; ++i) padding.push_back(of.pad_high[i]);
  }

  Dims stride;
  Dims dilation;
  Dims padding;  // low ends, then high ends
  int64_t groups;
};

// Without the elements of the spatial axes beyond those of `dims`, of which the first two are of no concern.
Tensor cut_to(Tensor x, const Dims& dims) {
  for (int32_t axis = 2; axis < dims.rank(); ++axis) {
    if (x.dims()[axis] > dims[axis]) x = tenon::narrow(x, axis, 0, dims[axis]);
  }
  return x;
}

// The gradient of conv with respect to its input of `dims`.
Tensor of_input(const Window& window, const Tensor& grad, const Tensor& weight, const Dims& dims) {
  const int32_t spatial = window.stride.rank();
  Dims missing;
  for (int32_t i = 0; i < spatial; ++i) {
    const int64_t reach = (grad.dims()[i + 2] - 1) * window.stride[i] - window.padding[i] -
                          window.padding[spatial + i] + window.dilation[i] * (weight.dims()[i + 2] - 1) + 1;
    missing.push_back(dims[i + 2] - reach);
  }
  return tenon::conv_transpose(grad, weight, Tensor(), window.stride, window.padding, missing, window.groups,
                               window.dilation);
}

// The gradient of conv with respect to its weight of `dims`: a convolution of the input by the gradient of the result
// in which batch and channels change places, and stride and dilation too.
Tensor of_weight(const Window& window, const Tensor& input, const Tensor& grad, const Dims& dims) {
  const int64_t batch = input.dim(0);
  const int64_t channels = input.dim(1) / window.groups;
  Dims apart{batch, window.groups, channels};
  Dims order{2, 1, 0};
  Dims together{channels, window.groups * batch};
  for (int32_t axis = 2; axis < input.rank(); ++axis) {
    apart.push_back(input.dims()[axis]);
    order.push_back(axis + 1);
    together.push_back(input.dims()[axis]);
  }
  const Tensor source = tenon::reshape(tenon::permute(tenon::reshape(input, apart), order), together);
  const Tensor kernel = tenon::transpose(grad, 0, 1);
  const Tensor product =
      tenon::conv(source, kernel, Tensor(), window.dilation, window.padding, window.stride, window.groups);
  return tenon::transpose(cut_to(product, dims), 0, 1);
}

Tensor of_bias(const Tensor& grad) {
  Dims axes{0};
  for (int32_t axis = 2; axis < grad.rank(); ++axis) axes.push_back(axis);
  return tenon::sum(grad, axes);
}

}  // namespace

void conv(const autograd::Backward& b) {
  const auto& attributes = b.attributes<ConvolutionAttributes>();
  if (attributes.activation != 0) {
    throw Error(Code::unsupported, "conv: with an activation in the same call it has no gradient.",
                "Call the activation after conv.");
  }
  const Window window(attributes.window);
  if (b.wants(0)) b.give(0, of_input(window, b.grad(), b.input(1), b.dims(0)));
  if (b.wants(1)) b.give(1, of_weight(window, b.input(0), b.grad(), b.dims(1)));
  if (b.wants(2)) b.give(2, of_bias(b.grad()));
  if (b.wants(3)) b.give(3, b.grad());
}

// The transpose exchanges the parts of input and result.
void conv_transpose(const autograd::Backward& b) {
  const Window window(b.attributes<ConvolutionAttributes>().window);
  if (b.wants(0)) {
    const Tensor whole =
        tenon::conv(b.grad(), b.input(1), Tensor(), window.stride, window.padding, window.dilation, window.groups);
    b.give(0, cut_to(whole, b.dims(0)));
  }
  if (b.wants(1)) b.give(1, of_weight(window, b.grad(), b.input(0), b.dims(1)));
  if (b.wants(2)) b.give(2, of_bias(b.grad()));
}

}  // namespace tenon::gradients
