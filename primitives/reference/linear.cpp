// matmul and convolution, with their epilogues.
#include <algorithm>

#include "primitives/descriptor/quantisation.h"
#include "primitives/reference/call.h"
#include "primitives/reference/prelude.h"
#include "primitives/reference/quantisation.h"
#include "primitives/reference/scalar.h"

namespace tenon::reference {
namespace {

template <class T>
T with_epilogues(const Call& call, T value, const int64_t* index) {
  for (uint32_t i = 0; i < call.desc.epilogue_count; ++i) {
    const ep_epilogue& epilogue = call.desc.epilogues[i];
    if (epilogue.arity == 1) {
      value = unary<T>(epilogue.op, value, call.parameter<T>(epilogue.scalar),
                       epilogue.scalar + 1 < EP_MAX_SCALARS ? call.parameter<T>(epilogue.scalar + 1) : T{0});
    } else if (epilogue.role != 0) {
      value = binary<T>(epilogue.op, value, call[epilogue.role].get<T>(index));
    } else {
      value = binary<T>(epilogue.op, value, call.parameter<T>(epilogue.scalar));
    }
  }
  return value;
}

// The input position that a tap reads: position * stride - pad + tap * dilation. For a transposed convolution, the
// position whose tap writes to this element.
struct Tap {
  int64_t position;
  bool inside;
};

Tap tap_at(const ep_convolution_attributes& at, int32_t i, int64_t out, int64_t tap, int64_t dim) {
  if (at.transposed == 0) {
    const int64_t position = out * at.stride[i] - at.pad_low[i] + tap * at.dilation[i];
    return {position, position >= 0 && position < dim};
  }
  const int64_t scaled = out + at.pad_low[i] - tap * at.dilation[i];
  const int64_t position = scaled / at.stride[i];
  return {position, scaled >= 0 && scaled % at.stride[i] == 0 && position < dim};
}

// The sum over k of left[.., m, k] * right[.., k, n] for `index` = [.., m, n].
template <class T, class Left, class Right>
T row_times_column(int32_t rank, int64_t length, const int64_t* index, Left left, Right right) {
  int64_t a[EP_MAX_RANK];
  int64_t b[EP_MAX_RANK];
  std::copy_n(index, rank, a);
  std::copy_n(index, rank, b);
  T total = 0;
  for (int64_t k = 0; k < length; ++k) {
    a[rank - 1] = b[rank - 2] = k;
    total = prelude::ep_add(total, prelude::ep_mul(static_cast<T>(left(a)), static_cast<T>(right(b))));
  }
  return total;
}

// The sum over channels and taps of source * kernel for one element `out` of DST.
template <class T, class Source, class Kernel>
T convolve(const Call& call, const int64_t* out, Source source, Kernel kernel) {
  const ep_convolution_attributes& attributes = call.desc.attributes.convolution;
  const Operand src = call[EP_ROLE_SRC];
  const int64_t out_per_group = call[EP_ROLE_DST].dim(1) / attributes.groups;
  const int64_t in_per_group = src.dim(1) / attributes.groups;
  const int64_t group = out[1] / out_per_group;
  const bool transposed = attributes.transposed != 0;
  T total = 0;
  for (int64_t channel = 0; channel < in_per_group; ++channel) {
    for_each_index(call[EP_ROLE_WEIGHT].dims().subspan(2), [&](const int64_t* taps) {
      int64_t in[EP_MAX_RANK] = {out[0], group * in_per_group + channel};
      int64_t w[EP_MAX_RANK] = {transposed ? in[1] : out[1], transposed ? out[1] % out_per_group : channel};
      for (int32_t i = 0; i < src.rank() - 2; ++i) {
        const Tap tap = tap_at(attributes, i, out[i + 2], taps[i], src.dim(i + 2));
        if (!tap.inside) return;
        in[i + 2] = tap.position;
        w[i + 2] = taps[i];
      }
      total = prelude::ep_add(total, prelude::ep_mul(static_cast<T>(source(in)), static_cast<T>(kernel(w))));
    });
  }
  return total;
}

// A matmul or convolution with a quantised operand. `sum(zero, index, left, right)` returns the sum of products, in the
// type of `zero`, for one element of DST.
template <class Sum>
void run_quantised(Call& call, int32_t right_role, Sum sum) {
  const Quantised dst(call, EP_ROLE_DST);
  const Quantised left(call, EP_ROLE_SRC);
  const Quantised right(call, right_role);
  const Operand bias = call[EP_ROLE_BIAS];
  const bool of_channels = right_role == EP_ROLE_WEIGHT;
  for_each_index(dst.operand().dims(), [&](const int64_t* index) {
    if (!dst && dst.operand().dtype() == DType::i32) {
      return dst.operand().set(index, sum(
                                          int64_t{0}, index, [&](const int64_t* at) { return left.integer(at); },
                                          [&](const int64_t* at) { return right.integer(at); }));
    }
    double total = sum(
        0.0, index, [&](const int64_t* at) { return left.real(at); },
        [&](const int64_t* at) { return right.real(at); });
    if (bias) total += bias.get<double>(of_channels ? index + 1 : index);
    dst.write(index, with_epilogues(call, total, index));
  });
}

}  // namespace

void run_matmul(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand a = call[EP_ROLE_SRC];
  const Operand b = call[EP_ROLE_SRC_B];
  const Operand bias = call[EP_ROLE_BIAS];
  const int32_t rank = dst.rank();
  const int64_t length = a.dim(rank - 1);
  if (descriptor::is_quantised(call.desc)) {
    return run_quantised(call, EP_ROLE_SRC_B, [&](auto zero, const int64_t* index, auto left, auto right) {
      return row_times_column<decltype(zero)>(rank, length, index, left, right);
    });
  }
  with_compute_type(dst.dtype(), [&](auto type) {
    using T = decltype(type);
    for_each_index(dst.dims(), [&](const int64_t* index) {
      T total = row_times_column<T>(
          rank, length, index, [&](const int64_t* at) { return a.get<T>(at); },
          [&](const int64_t* at) { return b.get<T>(at); });
      if (bias) total = prelude::ep_add(total, bias.get<T>(index));
      dst.set(index, with_epilogues(call, total, index));
    });
  });
}

void run_convolution(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand src = call[EP_ROLE_SRC];
  const Operand weight = call[EP_ROLE_WEIGHT];
  const Operand bias = call[EP_ROLE_BIAS];
  if (descriptor::is_quantised(call.desc)) {
    return run_quantised(call, EP_ROLE_WEIGHT, [&](auto zero, const int64_t* index, auto left, auto right) {
      return convolve<decltype(zero)>(call, index, left, right);
    });
  }
  for_each_index(dst.dims(), [&](const int64_t* out) {
    double total = convolve<double>(
        call, out, [&](const int64_t* at) { return src.get<double>(at); },
        [&](const int64_t* at) { return weight.get<double>(at); });
    if (bias) total += bias.get<double>(out + 1);
    dst.set(out, with_epilogues(call, total, out));
  });
}

}  // namespace tenon::reference
