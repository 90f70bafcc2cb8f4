// Gradients of convolution and its transpose.
#include <algorithm>

#include "core/ops/attributes.h"
#include "core/ops/gradients.h"
#include "core/ops/operators.h"
#include "core/ops/sizes.h"

namespace tenon::gradients {
namespace {

Dims numbers(const int64_t* first, int32_t count) { return Dims(std::span(first, static_cast<size_t>(count))); }

// The window of a convolution, as arguments of conv.
struct Window {
  template <class Attributes>
  explicit Window(const Attributes& of)
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

// `x` without the elements of the spatial axes beyond `dims`. The first two entries of `dims` are ignored.
Tensor cut_to(Tensor x, const SymDims& dims) {
  for (int32_t axis = 2; axis < dims.rank(); ++axis) {
    const int64_t size = bound(dims[axis], "a gradient of conv");
    if (x.dim(axis) > size) x = tenon::narrow(x, axis, 0, size);
  }
  return x;
}

// The gradient of conv with respect to its input of `dims`. The first two entries of `dims` are ignored.
Tensor of_input(const Window& window, const Tensor& grad, const Tensor& weight, const SymDims& dims) {
  const int32_t spatial = window.stride.rank();
  Dims missing;
  for (int32_t i = 0; i < spatial; ++i) {
    const int64_t reach = (grad.dim(i + 2) - 1) * window.stride[i] - window.padding[i] - window.padding[spatial + i] +
                          window.dilation[i] * (weight.dim(i + 2) - 1) + 1;
    missing.push_back(bound(dims[i + 2], "a gradient of conv") - reach);
  }
  return tenon::conv_transpose(grad, weight, Tensor(), window.stride, window.padding, missing, window.groups,
                               window.dilation);
}

Tensor of_weight(const Window& window, const Tensor& input, const Tensor& grad, const Dims& dims) {
  return tenon::conv_grad_weight(input, dims, grad, window.stride, window.padding, window.dilation, window.groups);
}

// The part of `image` that windows at `count` positions reach: an output_padding may have added elements at the end.
// The padding at the high ends becomes the part of the windows beyond the image. Undefined if the windows reach no
// element.
Tensor reached(Tensor image, const Dims& weight, const Dims& count, Window* window) {
  const int32_t spatial = window->stride.rank();
  for (int32_t i = 0; i < spatial; ++i) {
    const int64_t end =
        (count[i + 2] - 1) * window->stride[i] + window->dilation[i] * (weight[i + 2] - 1) + 1 - window->padding[i];
    if (end < 1) return {};
    window->padding[spatial + i] = std::max<int64_t>(0, end - image.dim(i + 2));
    if (end < image.dim(i + 2)) image = tenon::narrow(image, i + 2, 0, end);
  }
  return image;
}

Tensor of_bias(const Tensor& grad) {
  Dims axes{0};
  for (int32_t axis = 2; axis < grad.rank(); ++axis) axes.push_back(axis);
  return tenon::sum(grad, axes);
}

}  // namespace

void conv(const autograd::Backward& b) {
  const auto& attributes = b.attributes<ConvolutionAttributes>();
  const Window window(attributes.window);
  if (b.wants(0)) b.give(0, of_input(window, b.grad(), b.input(1), b.sizes(0)));
  if (b.wants(1)) b.give(1, of_weight(window, b.input(0), b.grad(), b.dims(1)));
  if (b.wants(2)) b.give(2, of_bias(b.grad()));
}

// The transpose swaps the roles of input and result.
void conv_transpose(const autograd::Backward& b) {
  const Window window(b.attributes<ConvolutionAttributes>().window);
  if (b.wants(0)) {
    const Tensor whole =
        tenon::conv(b.grad(), b.input(1), Tensor(), window.stride, window.padding, window.dilation, window.groups);
    b.give(0, cut_to(whole, b.sizes(0)));
  }
  if (b.wants(1)) {
    const Tensor input = b.input(0);
    Window exact = window;
    const Tensor image = reached(b.grad(), b.dims(1), input.dims(), &exact);
    b.give(1, image.defined() ? of_weight(exact, image, input, b.dims(1)) : tenon::zeros_like(b.input(1)));
  }
  if (b.wants(2)) b.give(2, of_bias(b.grad()));
}

// It is linear in both arguments.
void conv_grad_weight(const autograd::Backward& b) {
  const Window window(b.attributes<ConvolutionWeightAttributes>().window);
  if (b.wants(0)) b.give(0, of_input(window, b.input(1), b.grad(), b.sizes(0)));
  if (b.wants(1)) {
    const Tensor whole =
        tenon::conv(b.input(0), b.grad(), Tensor(), window.stride, window.padding, window.dilation, window.groups);
    b.give(1, cut_to(whole, b.sizes(1)));
  }
}

}  // namespace tenon::gradients
