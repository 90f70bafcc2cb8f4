#include <cmath>
#include <limits>

#include "primitives/reference/call.h"

namespace tenon::reference {
namespace {

// The results of a kernel in one window so far.
template <class T>
struct Window {
  T greatest = std::is_same_v<T, double> ? -std::numeric_limits<T>::infinity() : std::numeric_limits<T>::lowest();
  int64_t greatest_at = 0;  // row-major in its plane
  double total = 0;
  int64_t inside = 0;
  int64_t padded = 0;  // inside the source and its padding
  double powers = 0;   // the sum of powers of an LP pooling
  double p = 0;

  void see(T x, int64_t at) {
    bool wins = inside == 0 || x > greatest;
    if constexpr (std::is_same_v<T, double>) wins = !std::isnan(greatest) && (wins || std::isnan(x));
    if (wins) {
      greatest = x;
      greatest_at = at;
    }
    total += static_cast<double>(x);
    if (p != 0) powers += std::pow(std::abs(static_cast<double>(x)), p);
    ++inside;
  }
};

template <class T>
Window<T> window_at(const ep_pooling_attributes& attributes, const Operand& src, const int64_t* out) {
  Window<T> window;
  window.p = attributes.p;
  for_each_index({attributes.kernel, static_cast<size_t>(attributes.spatial_rank)}, [&](const int64_t* tap) {
    int64_t in[EP_MAX_RANK] = {out[0], out[1]};
    int64_t offset = 0;
    bool inside = true;
    for (int32_t i = 0; i < attributes.spatial_rank; ++i) {
      const int64_t dim = src.dim(i + 2);
      const int64_t at = out[i + 2] * attributes.stride[i] - attributes.pad_low[i] + tap[i] * attributes.dilation[i];
      if (at >= dim + attributes.pad_high[i]) return;
      inside = inside && at >= 0 && at < dim;
      in[i + 2] = at;
      offset = offset * dim + at;
    }
    ++window.padded;
    if (inside) window.see(src.get<T>(in), offset);
  });
  return window;
}

}  // namespace

void run_pooling(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const Operand indices = call[EP_ROLE_DST_INDICES];
  const ep_pooling_attributes& attributes = call.desc.attributes.pooling;
  with_compute_type(src.dtype(), [&](auto type) {
    using T = decltype(type);
    for_each_index(dst.dims(), [&](const int64_t* out) {
      const Window<T> window = window_at<T>(attributes, src, out);
      if (attributes.op == EP_POOLING_MAX) {
        dst.set(out, window.greatest);
        if (indices) indices.set<int64_t>(out, window.greatest_at);
        return;
      }
      if (attributes.op == EP_POOLING_LP) return dst.set(out, std::pow(window.powers, 1 / attributes.p));
      const int64_t count = attributes.op == EP_POOLING_AVERAGE ? window.inside : window.padded;
      dst.set(out, window.total / static_cast<double>(count));
    });
  });
}

}  // namespace tenon::reference
