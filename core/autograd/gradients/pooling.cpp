// Pooling. Each window gives its gradient back to the elements that it was made from: a transposed convolution.
#include <algorithm>

#include "core/ops/attributes.h"
#include "core/ops/gradients.h"
#include "core/ops/operators.h"

namespace tenon::gradients {
namespace {

// The windows over an input of `dims` that gave a result of `results`, per spatial axis.
struct Windows {
  Windows(const ep_pooling_attributes& of, const Dims& dims, const Dims& results) : rank(of.spatial_rank) {
    for (int32_t i = 0; i < rank; ++i) {
      kernel.push_back(of.kernel[i]);
      stride.push_back(of.stride[i]);
      dilation.push_back(of.dilation[i]);
      low.push_back(of.pad_low[i]);
      high.push_back(of.pad_high[i]);
      length.push_back(dims[i + 2]);
      count.push_back(results[i + 2]);
      reach.push_back(std::max((count[i] - 1) * stride[i] + dilation[i] * (kernel[i] - 1) + 1, low[i] + length[i]));
    }
  }

  int32_t rank;
  Dims kernel, stride, dilation, low, high;
  Dims length;  // of the input
  Dims count;   // of windows
  Dims reach;   // from the first element of the low padding to the end of the last window, or of the input
};

// `first` before the numbers of `rest`.
Dims joined(const Dims& first, const Dims& rest) {
  Dims dims = first;
  for (const int64_t dim : rest) dims.push_back(dim);
  return dims;
}

// The sum, for each element of the input, of what the windows give it: parts [planes, rows of weight, windows..] by
// weight [rows, 1, kernel..], as planes of the input.
Tensor given_back(const Windows& windows, const Tensor& parts, const Tensor& weight) {
  const Tensor padded = tenon::conv_transpose(parts, weight, Tensor(), windows.stride, 0, 0, 1, windows.dilation);
  Tensor x = padded;
  for (int32_t i = 0; i < windows.rank; ++i) {
    const int64_t missing = windows.low[i] + windows.length[i] - x.dims()[i + 2];
    if (missing > 0) {
      Dims pads = Dims::filled(2 * (windows.rank - i), 0);
      pads[pads.rank() - 1] = missing;
      x = tenon::pad(x, pads);
    }
    x = tenon::narrow(x, i + 2, windows.low[i], windows.length[i]);
  }
  return x;
}

// Numbers 0, step, 2 step .. less `less` along one of `rank` axes.
Tensor ramp(int64_t count, int64_t step, int64_t less, int32_t axis, int32_t rank, Device device) {
  Dims dims = Dims::filled(rank, 1);
  dims[axis] = count;
  return tenon::reshape(tenon::arange(count, DType::i64, device) * step - less, dims);
}

// Where element [k] of window [w] lies, counted row-major in the padded input: [1, kernel elements, windows..].
Tensor places_of_windows(const Windows& windows, Device device) {
  const int32_t axes = 2 * windows.rank;
  Tensor place;
  for (int32_t i = 0; i < windows.rank; ++i) {
    const Tensor at = ramp(windows.kernel[i], windows.dilation[i], 0, i, axes, device) +
                      ramp(windows.count[i], windows.stride[i], 0, windows.rank + i, axes, device);
    place = place.defined() ? place * windows.reach[i] + at : at;
  }
  return tenon::reshape(place, joined({1, element_count(windows.kernel)}, windows.count));
}

// The same for positions in the input without padding, row-major.
Tensor places_of(const Windows& windows, Tensor positions) {
  Tensor place;
  int64_t factor = 1;
  for (int32_t i = windows.rank - 1; i >= 0; --i) {
    const Tensor at = (tenon::remainder(positions, windows.length[i]) + windows.low[i]) * factor;
    place = place.defined() ? place + at : at;
    positions = tenon::floor_divide(positions, windows.length[i]);
    factor *= windows.reach[i];
  }
  return place;
}

Tensor of_maxima(const Windows& windows, const Tensor& grad, const Tensor& positions, const Dims& dims) {
  const Dims planes = joined({dims[0] * dims[1], 1}, windows.count);
  const Tensor taken =
      tenon::eq(places_of(windows, tenon::reshape(positions, planes)), places_of_windows(windows, grad.device()));
  const Tensor parts = tenon::where(taken, tenon::reshape(grad, planes), 0);
  const int64_t elements = element_count(windows.kernel);
  const Tensor one_each = tenon::reshape(tenon::eye(elements, std::nullopt, grad.dtype(), grad.device()),
                                         joined({elements, 1}, windows.kernel));
  return tenon::reshape(given_back(windows, parts, one_each), dims);
}

// By how many elements each window was divided: a product over the axes.
Tensor divisors(const Windows& windows, bool with_padding, DType dtype, Device device) {
  Tensor product;
  for (int32_t i = 0; i < windows.rank; ++i) {
    const int64_t from = with_padding ? -windows.low[i] : 0;
    const int64_t to = windows.length[i] + (with_padding ? windows.high[i] : 0);
    std::vector<double> counts;
    for (int64_t w = 0; w < windows.count[i]; ++w) {
      int64_t count = 0;
      for (int64_t k = 0; k < windows.kernel[i]; ++k) {
        const int64_t at = w * windows.stride[i] - windows.low[i] + k * windows.dilation[i];
        count += at >= from && at < to ? 1 : 0;
      }
      counts.push_back(static_cast<double>(count));
    }
    Dims dims = Dims::filled(windows.rank + 2, 1);
    dims[i + 2] = windows.count[i];
    const Tensor along = tenon::cast(Tensor::from<double>(counts, dims, Device::host()), dtype).to(device);
    product = product.defined() ? product * along : along;
  }
  return product;
}

}  // namespace

void max_pool(const autograd::Backward& b) {
  const auto& attributes = b.attributes<PoolingAttributes>();
  const Windows windows(attributes.window, b.dims(0), b.grad().dims());
  const Tensor positions = std::get<1>(tenon::max_pool_with_indices(b.input(0).detach(), windows.kernel, windows.stride,
                                                                    joined(windows.low, windows.high), windows.dilation,
                                                                    attributes.ceil_mode != 0));
  b.give(0, of_maxima(windows, b.grad(), positions, b.dims(0)));
}

void max_pool_with_indices(const autograd::Backward& b) {
  const Windows windows(b.attributes<PoolingAttributes>().window, b.dims(0), b.grad().dims());
  b.give(0, of_maxima(windows, b.grad(), b.result(1), b.dims(0)));
}

void avg_pool(const autograd::Backward& b) {
  const auto& attributes = b.attributes<PoolingAttributes>();
  const Dims& dims = b.dims(0);
  const Windows windows(attributes.window, dims, b.grad().dims());
  const bool with_padding = attributes.window.op == EP_POOLING_AVERAGE_INCLUDE_PAD;
  const Tensor mean = b.grad() / divisors(windows, with_padding, b.grad().dtype(), b.grad().device());
  const Tensor parts = tenon::reshape(mean, joined({dims[0] * dims[1], 1}, windows.count));
  const Tensor ones = tenon::ones(joined({1, 1}, windows.kernel), b.grad().dtype(), b.grad().device());
  b.give(0, tenon::reshape(given_back(windows, parts, ones), dims));
}

}  // namespace tenon::gradients
