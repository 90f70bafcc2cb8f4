// Fourier transforms, the matrix of mel filters, and determinants.
#include <cmath>
#include <vector>

#include "core/ops/ops.h"
#include "primitives/text/format.h"
#include "sdk/onnx/importer/node_context.h"
#include "sdk/onnx/tensors/tensor_data.h"
#include "sdk/onnx/translate/translator.h"

namespace tenon::onnx {
namespace {

// Cuts `x` to `length` elements along `axis`, or pads it with zeros.
Tensor fitted(const Tensor& x, int64_t axis, int64_t length) {
  Dims dims = x.dims();
  if (dims[axis] == length) return x;
  if (dims[axis] > length) return narrow(x, axis, 0, length);
  dims[axis] = length - dims[axis];
  return concat(TensorList{x, zeros(dims, x.dtype(), x.device())}, axis);
}

// Complex numbers with imaginary parts 0, as pairs.
Tensor with_imaginary(const Tensor& x) { return concat(TensorList{x, zeros_like(x)}, -1); }

// Real numbers have a last axis of 1, complex numbers of 2.
TensorList dft(NodeContext& n) {
  const Tensor& x = n.input(0);
  const int32_t rank = x.rank();
  if (rank < 2 || (x.dim(-1) != 1 && x.dim(-1) != 2)) {
    n.invalid(fmt::format("its input has shape {}; the last axis must be 1 or 2", x.dims()));
  }
  const int64_t given = n.version() < 20 ? n.integer("axis", 1) : n.has(2) ? n.scalar(2).to_int() : -2;
  const int64_t axis = n.normalise_axis(given, rank);
  if (axis == rank - 1) n.invalid("its axis is the axis of real and imaginary parts");
  const bool inverse = n.flag("inverse", false), half = n.flag("onesided", false), complex = x.dim(-1) == 2;
  if (half && inverse) {
    // The other half would be the conjugates, so the result is real.
    if (!complex) n.invalid("its input is real, but a half of an inverse transform is complex");
    const int64_t length = n.has(1) ? n.scalar(1).to_int() : 2 * (x.dim(axis) - 1);
    if (length < 1) n.invalid(fmt::format("its length is {}; it must be from 1 to 2^31; at least 1 is needed", length));
    const double scale = 1 / static_cast<double>(length);
    return {unsqueeze(fft_c2r(fitted(x, axis, length / 2 + 1), length, axis, true, scale), -1)};
  }
  const int64_t length = n.has(1) ? n.scalar(1).to_int() : x.dim(axis);
  if (length < 1 || length > int64_t{1} << 31)
    n.invalid(fmt::format("its length is {}; it must be from 1 to 2^31", length));
  const double scale = inverse ? 1 / static_cast<double>(length) : 1;
  const Tensor source = fitted(x, axis, length);
  if (half && !complex) return {fft_r2c(squeeze(source, -1), axis, scale)};
  const Tensor whole = fft_c2c(complex ? source : with_imaginary(source), axis, inverse, scale);
  return {half ? narrow(whole, axis, 0, length / 2 + 1) : whole};
}

TensorList stft_of(NodeContext& n) {
  const Tensor& signal = n.input(0);
  if (signal.rank() != 3 || (signal.dim(2) != 1 && signal.dim(2) != 2)) {
    n.invalid(fmt::format("its signal has shape {}; [batch, length, 1 or 2] is needed", signal.dims()));
  }
  const Tensor window = n.optional(2);
  const int64_t step = n.scalar(1).to_int();
  const int64_t length = n.has(3) ? n.scalar(3).to_int() : window.defined() ? window.dim(0) : signal.dim(1);
  if (step < 1 || length < 1 || length > signal.dim(1)) {
    n.invalid(
        fmt::format("frames of {} elements, {} apart, do not fit a signal of shape {}", length, step, signal.dims()));
  }
  const Tensor starts =
      arange(Scalar(int64_t{0}), Scalar(signal.dim(1) - length + 1), Scalar(step), DType::i64, n.device());
  const Tensor places = add(unsqueeze(starts, 1), arange(Scalar(length), DType::i64, n.device()));
  Tensor frames = gather_slices(signal, 1, places);  // [batch, frames, length, 1 or 2]
  if (window.defined()) frames = mul(frames, unsqueeze(cast(window, signal.dtype()), -1));
  const bool half = n.flag("onesided", true), complex = signal.dim(2) == 2;
  if (half && !complex) return {fft_r2c(squeeze(frames, -1), 2)};
  const Tensor whole = fft_c2c(complex ? frames : with_imaginary(frames), 2);
  return {half ? narrow(whole, 2, 0, length / 2 + 1) : whole};
}

// Triangular filters over the frequencies of a transform, evenly spaced on the mel scale.
TensorList mel_weights(NodeContext& n) {
  const int64_t bins = n.scalar(0).to_int(), length = n.scalar(1).to_int(), rate = n.scalar(2).to_int();
  const double low = n.scalar(3).to_double(), high = n.scalar(4).to_double();
  const int64_t rows = length / 2 + 1;
  if (bins < 1 || length < 1 || rate < 1 || bins > 1 << 20 || rows > 1 << 20 || bins * rows > 1 << 26) {
    n.invalid(fmt::format("it cannot have {} bins for a transform of {} elements at {} Hz", bins, length, rate));
  }
  const auto mel = [](double hertz) { return 2595 * std::log10(1 + hertz / 700); };
  const double step = (mel(high) - mel(low)) / static_cast<double>(bins + 2);
  std::vector<int64_t> places;
  for (int64_t i = 0; i < bins + 2; ++i) {
    const double hertz = 700 * (std::pow(10, (static_cast<double>(i) * step + mel(low)) / 2595) - 1);
    const double place = std::floor(static_cast<double>(length + 1) * hertz / static_cast<double>(rate));
    places.push_back(place > 0 ? static_cast<int64_t>(std::min(place, static_cast<double>(rows))) : 0);  // also false
                                                                                                         // for NaN
  }
  std::vector<float> weights(static_cast<size_t>(rows * bins));
  for (int64_t bin = 0; bin < bins; ++bin) {
    const auto at = [&](int64_t row) -> float& { return weights[static_cast<size_t>(row * bins + bin)]; };
    const int64_t first = places[static_cast<size_t>(bin)], top = places[static_cast<size_t>(bin + 1)];
    const int64_t end = places[static_cast<size_t>(bin + 2)];
    for (int64_t row = first; row < top; ++row) {
      at(row) = static_cast<float>(row - first) / static_cast<float>(top - first);
    }
    if (top < rows) at(top) = 1;
    for (int64_t row = top; row < end; ++row) {
      at(row) = static_cast<float>(end - row) / static_cast<float>(end - top);
    }
  }
  const DType dtype = dtype_of_onnx(static_cast<int32_t>(n.integer("output_datatype", 1)));
  if (dtype == DType::none) n.unsupported("its output_datatype is one that Tenon does not have");
  return {cast(to(Tensor::from<float>(weights, {rows, bins}), n.device()), dtype)};
}

TensorList determinant(NodeContext& n) { return {linalg_det(n.input(0))}; }

constexpr Translator kSignalRows[] = {
    {.op_type = "DFT", .since = 17, .translate = dft},
    {.op_type = "Det", .since = 11, .translate = determinant},
    {.op_type = "MelWeightMatrix", .since = 17, .translate = mel_weights},
    {.op_type = "STFT", .since = 17, .translate = stft_of},
};

}  // namespace

std::span<const Translator> signal_translators() { return kSignalRows; }

}  // namespace tenon::onnx
