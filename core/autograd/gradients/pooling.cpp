// Gradients of pooling and of its backward ops, which are linear.
#include "core/ops/attributes.h"
#include "core/ops/gradients.h"
#include "core/ops/operators.h"
#include "core/ops/ops.h"

namespace tenon::gradients {
namespace {

Dims numbers(const int64_t* first, int32_t count) { return Dims(std::span(first, static_cast<size_t>(count))); }

// The windows of a pooling, as arguments of the ops.
struct Windows {
  explicit Windows(const ep_pooling_attributes& of)
      : kernel(numbers(of.kernel, of.spatial_rank)),
        stride(numbers(of.stride, of.spatial_rank)),
        padding(numbers(of.pad_low, of.spatial_rank)),
        dilation(numbers(of.dilation, of.spatial_rank)),
        with_padding(of.op == EP_POOLING_AVERAGE_INCLUDE_PAD) {
    for (int32_t i = 0; i < of.spatial_rank; ++i) padding.push_back(of.pad_high[i]);
  }

  Dims kernel;
  Dims stride;
  Dims padding;  // low ends, then high ends
  Dims dilation;
  bool with_padding;  // means include the padding
};

Tensor of_maxima(const PoolingAttributes& attributes, const Tensor& grad, const Tensor& positions,
                 const IntList& dims) {
  const Windows windows(attributes.window);
  return tenon::max_pool_with_indices_backward(grad, dims, windows.kernel, windows.stride, windows.padding,
                                               windows.dilation, attributes.ceil_mode != 0, positions);
}

}  // namespace

void max_pool(const autograd::Backward& b) {
  const auto& attributes = b.attributes<PoolingAttributes>();
  const Windows windows(attributes.window);
  const Tensor positions =
      std::get<1>(tenon::max_pool_with_indices(b.input(0).detach(), windows.kernel, windows.stride, windows.padding,
                                               windows.dilation, attributes.ceil_mode != 0));
  b.give(0, b.general(0, [&](const IntList& dims) { return of_maxima(attributes, b.grad(), positions, dims); }));
}

void max_pool_with_indices(const autograd::Backward& b) {
  const auto& attributes = b.attributes<PoolingAttributes>();
  b.give(0, b.general(0, [&](const IntList& dims) { return of_maxima(attributes, b.grad(), b.result(1), dims); }));
}

// Each window takes the value at the position of its maximum.
void max_pool_with_indices_backward(const autograd::Backward& b) {
  const Dims& dims = b.dims(0);
  const Dims planes{dims[0], dims[1], -1};
  const Tensor grad = tenon::reshape(b.grad(), planes);
  b.give(0, tenon::reshape(tenon::gather(grad, 2, tenon::reshape(b.input(1), planes)), dims));
}

// The gradient of |x|^p is p sign(x) |x|^(p - 1); the gradient of the root of a sum s = r^p is r^(1 - p) / p.
void lp_pool(const autograd::Backward& b) {
  const auto& attributes = b.attributes<PoolingAttributes>();
  const Windows windows(attributes.window);
  if (attributes.ceil_mode != 0) {
    throw Error(Subject{"lp_pool"}, Code::unsupported, "with ceil_mode it has no gradient.", "Pad the input instead.");
  }
  const double p = attributes.window.p;
  const Tensor x = b.input(0);
  const Tensor r = b.result(0);
  const Tensor of_sums = tenon::where(tenon::eq(r, 0), tenon::zeros_like(r), b.grad() * tenon::pow(r, 1 - p));
  int64_t count = 1;
  for (const int64_t k : windows.kernel) count *= k;
  b.give(0, b.general(0, [&](const IntList& dims) {
    const Tensor spread = tenon::avg_pool_backward(of_sums, dims, windows.kernel, windows.stride, windows.padding,
                                                   false, true, windows.dilation);
    const Tensor power = tenon::where(tenon::eq(x, 0), tenon::zeros_like(x), tenon::pow(tenon::abs(x), p - 1));
    return spread * tenon::sign(x) * power * static_cast<double>(count);
  }));
}

void avg_pool(const autograd::Backward& b) {
  const auto& attributes = b.attributes<PoolingAttributes>();
  const Windows windows(attributes.window);
  b.give(0, b.general(0, [&](const IntList& dims) {
    return tenon::avg_pool_backward(b.grad(), dims, windows.kernel, windows.stride, windows.padding,
                                    attributes.ceil_mode != 0, windows.with_padding, windows.dilation);
  }));
}

void avg_pool_backward(const autograd::Backward& b) {
  const auto& attributes = b.attributes<PoolingBackwardAttributes>();
  const Windows windows(attributes.window);
  b.give(0, tenon::avg_pool(b.grad(), windows.kernel, windows.stride, windows.padding, attributes.ceil_mode != 0,
                            windows.with_padding, windows.dilation));
}

}  // namespace tenon::gradients
