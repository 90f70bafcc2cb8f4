// Fourier transforms of pairs (real, imaginary), and window functions.
#include <cmath>
#include <numbers>
#include <vector>

#include "core/ops/functors/apply.h"
#include "primitives/text/format.h"

namespace tenon::functors {
namespace {

// The rank of a tensor of pairs without the pair axis.
int32_t pair_rank(std::string_view op, const Tensor& input) {
  if (input.rank() < 2 || input.dims()[input.rank() - 1] != 2) {
    refuse(op, "input of shape {} must hold pairs, real and imaginary part, along a last axis of 2.", input.dims());
  }
  return input.rank() - 1;
}

void require_length(std::string_view op, int64_t n) {
  if (n < 1) refuse(op, "n is {}; it must be at least 1.", n);
}

Tensor transform(OpId id, int32_t form, const Tensor& input, int32_t axis, bool inverse, int64_t length, double scale) {
  FourierAttributes attributes{};
  attributes.transform = {form, axis, inverse ? 1 : 0, 0};
  attributes.length = length;
  const Scalar scalars[] = {Scalar(scale)};
  return apply(id, {&input}, &attributes, scalars);
}

// The factor of a transform of n elements.
double scale_of(std::string_view op, std::string_view norm, bool inverse, int64_t n) {
  const auto count = static_cast<double>(n);
  if (norm == "ortho") return 1 / std::sqrt(count);
  if (norm == "backward") return inverse ? 1 / count : 1;
  if (norm == "forward") return inverse ? 1 : 1 / count;
  refuse(op, "norm is '{}'; it may be backward, ortho or forward.", norm);
}

// `input` cut, or padded with zeros, to n elements along `axis`.
Tensor fitted(const Tensor& input, int32_t axis, int64_t n) {
  Dims dims = input.dims();
  if (dims[axis] == n) return input;
  if (dims[axis] > n) return tenon::narrow(input, axis, 0, n);
  dims[axis] = n - dims[axis];
  return tenon::concat(std::vector<Tensor>{input, tenon::zeros(dims, input.dtype(), input.device())}, axis);
}

Tensor complex_fft(std::string_view op, const Tensor& input, std::optional<int64_t> n, int64_t dim,
                   std::string_view norm, bool inverse) {
  const Tensor source = floating(op, input);
  const int32_t axis = axis_of(op, dim, pair_rank(op, source));
  const int64_t length = n.value_or(source.dims()[axis]);
  require_length(op, length);
  return tenon::fft_c2c(fitted(source, axis, length), axis, inverse, scale_of(op, norm, inverse, length));
}

Tensor from_real(std::string_view op, const Tensor& input, std::optional<int64_t> n, int64_t dim, std::string_view norm,
                 bool inverse) {
  const Tensor source = floating(op, input);
  const int32_t axis = axis_of(op, dim, source.rank());
  const int64_t length = n.value_or(source.dims()[axis]);
  require_length(op, length);
  return tenon::fft_r2c(fitted(source, axis, length), axis, scale_of(op, norm, inverse, length));
}

Tensor to_real(std::string_view op, const Tensor& input, std::optional<int64_t> n, int64_t dim, std::string_view norm,
               bool inverse) {
  const Tensor source = floating(op, input);
  const int32_t axis = axis_of(op, dim, pair_rank(op, source));
  const int64_t length = n.value_or(2 * (source.dims()[axis] - 1));
  require_length(op, length);
  return tenon::fft_c2r(fitted(source, axis, length / 2 + 1), length, axis, inverse,
                        scale_of(op, norm, inverse, length));
}

// The complex conjugates of pairs.
Tensor conjugate(const Tensor& pairs) {
  const int64_t last = pairs.rank() - 1;
  return tenon::concat(
      std::vector<Tensor>{tenon::narrow(pairs, last, 0, 1), tenon::neg(tenon::narrow(pairs, last, 1, 1))}, last);
}

Dims axes_of(std::string_view op, IntList dim, int32_t rank) {
  Dims axes;
  for (size_t i = 0; i < dim.size(); ++i) axes.push_back(axis_of(op, dim[i], rank));
  for (int32_t axis = 0; dim.empty() && axis < rank; ++axis) axes.push_back(axis);
  return axes;
}

Tensor complex_fftn(std::string_view op, const Tensor& input, IntList dim, std::string_view norm, bool inverse) {
  Tensor result = floating(op, input);
  for (const int64_t axis : axes_of(op, dim, pair_rank(op, result))) {
    result = complex_fft(op, result, std::nullopt, axis, norm, inverse);
  }
  return result;
}

// Rotates each axis of `dim`: first the elements from `part(length)` on, then those before it.
template <class Part>
Tensor shifted(std::string_view op, const Tensor& input, IntList dim, const Part& part) {
  require_defined(op, "input", input);
  Tensor result = input;
  for (const int64_t axis : axes_of(op, dim, input.rank())) {
    const int64_t n = input.dims()[axis];
    const int64_t first = part(n);
    if (first == 0) continue;
    result = tenon::concat(
        std::vector<Tensor>{tenon::narrow(result, axis, first, n - first), tenon::narrow(result, axis, 0, first)},
        axis);
  }
  return result;
}

// The angles 2 pi i / n of a window of `length` elements.
Tensor angles(std::string_view op, int64_t length, bool periodic, DType dtype, Device device) {
  if (length < 1) refuse(op, "window_length is {}; it must be at least 1.", length);
  if (!is_floating(dtype)) refuse(op, "dtype is {}; it must be floating-point.", dtype_name(dtype));
  const int64_t n = periodic ? length : std::max<int64_t>(length - 1, 1);
  const Tensor places = tenon::arange(Scalar(length), DType::f64, device);
  return tenon::mul(places, Scalar(2 * std::numbers::pi / static_cast<double>(n)));
}

// c0 + c1 cos(angle) + c2 cos(2 angle); a window of one element is 1.
Tensor cosine_window(std::string_view op, int64_t length, bool periodic, DType dtype, Device device, double c0,
                     double c1, double c2) {
  if (length == 1) return tenon::ones({1}, dtype, device);
  const Tensor angle = angles(op, length, periodic, dtype, device);
  Tensor window = tenon::add(tenon::mul(tenon::cos(angle), Scalar(c1)), Scalar(c0));
  if (c2 != 0) {
    window = tenon::add(window, tenon::mul(tenon::cos(tenon::mul(angle, Scalar(2.0))), Scalar(c2)));
  }
  return tenon::cast(window, dtype);
}

// How a signal is cut into frames.
struct Frames {
  int64_t size, hop, width;  // width: of the window, centred in a frame
};

Frames frames_of(std::string_view op, int64_t n_fft, std::optional<int64_t> hop_length,
                 std::optional<int64_t> win_length, const Tensor& window) {
  require_length(op, n_fft);
  const int64_t hop = hop_length.value_or(std::max<int64_t>(n_fft / 4, 1));
  const int64_t width = win_length.value_or(n_fft);
  if (hop < 1) refuse(op, "hop_length is {}; it must be at least 1.", hop);
  if (width < 1 || width > n_fft) refuse(op, "win_length is {}; it must be 1 to n_fft ({}).", width, n_fft);
  if (window.defined() && (window.rank() != 1 || window.dims()[0] != width)) {
    refuse(op, "window of shape {} must have shape [{}].", window.dims(), width);
  }
  return {n_fft, hop, width};
}

// The window padded to the length of a frame; undefined if it is 1 everywhere.
Tensor weights_of(const Frames& frames, const Tensor& window, DType dtype, Device device) {
  if (!window.defined() && frames.width == frames.size) return {};
  const Tensor weights = window.defined() ? tenon::cast(window, dtype) : tenon::ones(frames.width, dtype, device);
  const int64_t low = (frames.size - frames.width) / 2;
  return tenon::pad(weights, {low, frames.size - frames.width - low});
}

// The overlap-add of frames [batch, count, size], `hop` apart, in a signal of `length`.
Tensor overlapped(const Tensor& frames, int64_t hop, int64_t length) {
  const Tensor windows = tenon::transpose(frames, 1, 2);
  const Tensor sums = tenon::fold(windows, {1, length}, {1, frames.dim(2)}, 1, 0, {1, hop});
  return tenon::reshape(sums, {frames.dim(0), length});
}

}  // namespace

Tensor fft_c2c(const Tensor& input, int64_t dim, bool inverse, double scale) {
  const Tensor source = floating("fft_c2c", input);
  const int32_t axis = axis_of("fft_c2c", dim, pair_rank("fft_c2c", source));
  return transform(OpId::fft_c2c, EP_FFT_COMPLEX, source, axis, inverse, source.dims()[axis], scale);
}

Tensor fft_r2c(const Tensor& input, int64_t dim, double scale) {
  const Tensor source = floating("fft_r2c", input);
  const int32_t axis = axis_of("fft_r2c", dim, source.rank());
  require_length("fft_r2c", source.dims()[axis]);
  if (source.rank() == EP_MAX_RANK) refuse("fft_r2c", "input has rank {}; pairs need one more axis.", source.rank());
  return transform(OpId::fft_r2c, EP_FFT_REAL_TO_HALF, source, axis, false, source.dims()[axis] / 2 + 1, scale);
}

Tensor fft_c2r(const Tensor& input, int64_t n, int64_t dim, bool inverse, double scale) {
  const Tensor source = floating("fft_c2r", input);
  const int32_t axis = axis_of("fft_c2r", dim, pair_rank("fft_c2r", source));
  require_length("fft_c2r", n);
  if (source.dims()[axis] != n / 2 + 1) {
    refuse("fft_c2r", "{} numbers need {} pairs, but input {} has {}.", n, n / 2 + 1, source.dims(),
           source.dims()[axis]);
  }
  return transform(OpId::fft_c2r, EP_FFT_HALF_TO_REAL, source, axis, inverse, n, scale);
}

Tensor fft_fft(const Tensor& input, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return complex_fft("fft_fft", input, n, dim, norm, false);
}
Tensor fft_ifft(const Tensor& input, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return complex_fft("fft_ifft", input, n, dim, norm, true);
}
Tensor fft_rfft(const Tensor& input, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return from_real("fft_rfft", input, n, dim, norm, false);
}
Tensor fft_irfft(const Tensor& input, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return to_real("fft_irfft", input, n, dim, norm, true);
}
Tensor fft_hfft(const Tensor& input, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return to_real("fft_hfft", input, n, dim, norm, false);
}
Tensor fft_ihfft(const Tensor& input, std::optional<int64_t> n, int64_t dim, std::string_view norm) {
  return conjugate(from_real("fft_ihfft", input, n, dim, norm, true));
}
Tensor fft_fftn(const Tensor& input, IntList dim, std::string_view norm) {
  return complex_fftn("fft_fftn", input, dim, norm, false);
}
Tensor fft_ifftn(const Tensor& input, IntList dim, std::string_view norm) {
  return complex_fftn("fft_ifftn", input, dim, norm, true);
}
Tensor fft_fft2(const Tensor& input, std::string_view norm) { return tenon::fft_fftn(input, {-2, -1}, norm); }
Tensor fft_ifft2(const Tensor& input, std::string_view norm) { return tenon::fft_ifftn(input, {-2, -1}, norm); }

Tensor fft_rfftn(const Tensor& input, IntList dim, std::string_view norm) {
  require_defined("fft_rfftn", "input", input);
  const Dims axes = axes_of("fft_rfftn", dim, input.rank());
  if (axes.empty()) refuse("fft_rfftn", "input has rank 0; it must have at least 1.");
  Tensor result = tenon::fft_rfft(input, std::nullopt, axes.back(), norm);
  for (int32_t i = 0; i + 1 < axes.rank(); ++i) result = tenon::fft_fft(result, std::nullopt, axes[i], norm);
  return result;
}

Tensor fft_irfftn(const Tensor& input, std::optional<int64_t> n, IntList dim, std::string_view norm) {
  Tensor result = floating("fft_irfftn", input);
  const Dims axes = axes_of("fft_irfftn", dim, pair_rank("fft_irfftn", result));
  for (int32_t i = 0; i + 1 < axes.rank(); ++i) result = tenon::fft_ifft(result, std::nullopt, axes[i], norm);
  return tenon::fft_irfft(result, n, axes.back(), norm);
}

Tensor fft_fftfreq(int64_t n, double d, DType dtype, Device device) {
  require_length("fft_fftfreq", n);
  const int64_t half = (n - 1) / 2 + 1;
  const auto scaled = [&](int64_t first, int64_t end) {
    const Tensor places = tenon::arange(Scalar(first), Scalar(end), Scalar(int64_t{1}), DType::f64, device);
    return tenon::cast(tenon::div(places, Scalar(static_cast<double>(n) * d)), dtype);
  };
  return tenon::concat(std::vector<Tensor>{scaled(0, half), scaled(-(n / 2), 0)});
}

Tensor fft_rfftfreq(int64_t n, double d, DType dtype, Device device) {
  require_length("fft_rfftfreq", n);
  const Tensor places = tenon::arange(Scalar(n / 2 + 1), DType::f64, device);
  return tenon::cast(tenon::div(places, Scalar(static_cast<double>(n) * d)), dtype);
}

Tensor fft_fftshift(const Tensor& input, IntList dim) {
  return shifted("fft_fftshift", input, dim, [](int64_t n) { return n - n / 2; });
}
Tensor fft_ifftshift(const Tensor& input, IntList dim) {
  return shifted("fft_ifftshift", input, dim, [](int64_t n) { return n / 2; });
}

Tensor hann_window(int64_t window_length, bool periodic, DType dtype, Device device) {
  return cosine_window("hann_window", window_length, periodic, dtype, device, 0.5, -0.5, 0);
}
Tensor hamming_window(int64_t window_length, bool periodic, double alpha, double beta, DType dtype, Device device) {
  return cosine_window("hamming_window", window_length, periodic, dtype, device, alpha, -beta, 0);
}
Tensor blackman_window(int64_t window_length, bool periodic, DType dtype, Device device) {
  return cosine_window("blackman_window", window_length, periodic, dtype, device, 0.42, -0.5, 0.08);
}
Tensor bartlett_window(int64_t window_length, bool periodic, DType dtype, Device device) {
  if (window_length == 1) return tenon::ones({1}, dtype, device);
  // 1 in the middle, where the angle is pi.
  const Tensor angle = angles("bartlett_window", window_length, periodic, dtype, device);
  const Tensor away = tenon::abs(tenon::sub(tenon::div(angle, Scalar(std::numbers::pi)), Scalar(1.0)));
  return tenon::cast(tenon::sub(Scalar(1.0), away), dtype);
}

Tensor stft(const Tensor& input, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
            const Tensor& window, bool center, std::string_view pad_mode, bool normalized, bool onesided) {
  constexpr std::string_view op = "stft";
  Tensor source = floating(op, input);
  if (source.rank() < 1 || source.rank() > 2) refuse("stft", "input {} must have rank 1 or 2.", source.dims());
  const Frames how = frames_of(op, n_fft, hop_length, win_length, window);
  const bool single = source.rank() == 1;
  if (single) source = tenon::unsqueeze(source, 0);
  if (center) source = tenon::pad(source, {n_fft / 2, n_fft / 2}, pad_mode);
  const int64_t length = source.dims()[1];
  if (length < n_fft) refuse("stft", "input of {} elements is shorter than n_fft ({}).", length, n_fft);
  const Tensor starts =
      tenon::arange(Scalar(int64_t{0}), Scalar(length - n_fft + 1), Scalar(how.hop), DType::i64, source.device());
  const Tensor places =
      tenon::add(tenon::unsqueeze(starts, 1), tenon::arange(Scalar(n_fft), DType::i64, source.device()));
  Tensor frames = tenon::gather_slices(source, 1, places);
  const Tensor weights = weights_of(how, window, frames.dtype(), frames.device());
  if (weights.defined()) frames = tenon::mul(frames, weights);
  const double scale = normalized ? 1 / std::sqrt(static_cast<double>(n_fft)) : 1;
  Tensor result;
  if (onesided) {
    result = tenon::fft_r2c(frames, 2, scale);
  } else {
    const Tensor pairs = tenon::stack(std::vector<Tensor>{frames, tenon::zeros_like(frames)}, 3);
    result = tenon::fft_c2c(pairs, 2, false, scale);
  }
  result = tenon::transpose(result, 1, 2);
  return single ? tenon::squeeze(result, 0) : result;
}

Tensor istft(const Tensor& input, int64_t n_fft, std::optional<int64_t> hop_length, std::optional<int64_t> win_length,
             const Tensor& window, bool center, bool normalized, std::optional<bool> onesided,
             std::optional<int64_t> length) {
  constexpr std::string_view op = "istft";
  Tensor source = floating(op, input);
  const int32_t rank = pair_rank(op, source);
  if (rank < 2 || rank > 3) refuse("istft", "input {} must be [batch?, frequencies, frames, 2].", source.dims());
  const Frames frames = frames_of(op, n_fft, hop_length, win_length, window);
  const bool single = rank == 2;
  if (single) source = tenon::unsqueeze(source, 0);
  const bool half = onesided.value_or(source.dims()[1] != n_fft);
  const int64_t frequencies = half ? n_fft / 2 + 1 : n_fft, count = source.dims()[2];
  if (source.dims()[1] != frequencies) {
    refuse("istft", "input has {} frequencies, but {} of n_fft {} has {}.", source.dims()[1],
           half ? "one side" : "the whole", n_fft, frequencies);
  }
  if (count < 1) refuse("istft", "input {} has no frames.", input.dims());
  source = tenon::transpose(source, 1, 2);
  const double scale = 1 / (normalized ? std::sqrt(static_cast<double>(n_fft)) : static_cast<double>(n_fft));
  Tensor parts = half ? tenon::fft_c2r(source, n_fft, 2, true, scale)
                      : tenon::select(tenon::fft_c2c(source, 2, true, scale), 3, 0);
  const Tensor weights = weights_of(frames, window, parts.dtype(), parts.device());
  if (weights.defined()) parts = tenon::mul(parts, weights);
  const Tensor once = weights.defined() ? weights : tenon::ones(n_fft, parts.dtype(), parts.device());
  const Tensor squares = tenon::expand(tenon::square(once), {1, count, n_fft});
  const int64_t all = n_fft + frames.hop * (count - 1), first = center ? n_fft / 2 : 0;
  const int64_t end = length ? first + *length : all - first;
  if (end <= first) refuse("istft", "the result would have {} elements; it must have at least 1.", end - first);
  const int64_t there = std::min(end, all) - first;
  const Tensor sums = tenon::narrow(overlapped(parts, frames.hop, all), 1, first, there);
  const Tensor weight = tenon::narrow(overlapped(squares, frames.hop, all), 1, first, there);
  const Tensor least = tenon::amin(weight);
  if (current_interpreter().host_value_known(least) && least.item().to_double() < 1e-11) {
    refuse("istft", "the squares of the window add up to {} somewhere, which cannot be divided by.",
           least.item().to_double());
  }
  Tensor result = tenon::div(sums, weight);
  if (end > all) result = tenon::pad(result, {0, end - all});
  return single ? tenon::squeeze(result, 0) : result;
}

}  // namespace tenon::functors
