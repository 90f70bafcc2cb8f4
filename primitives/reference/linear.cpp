// matmul and convolution, with their epilogues.
#include <algorithm>
#include "primitives/reference/call.h"
#include "primitives/reference/prelude.h"
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

// The input position that a tap reads: position * stride - pad + tap * dilation. Of a transposed convolution, the
// position whose tap writes here.
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

}  // namespace

void run_matmul(Call& call) {
  const Operand dst = call[EP_ROLE_DST];
  const Operand a = call[EP_ROLE_SRC];
  const Operand b = call[EP_ROLE_SRC_B];
  const Operand bias = call[EP_ROLE_BIAS];
  const int32_t rank = dst.rank();
  with_compute_type(dst.dtype(), [&](auto type) {
    using T = decltype(type);
    for_each_index(dst.dims(), [&](const int64_t* index) {
      int64_t left[EP_MAX_RANK];
      int64_t right[EP_MAX_RANK];
      std::copy_n(index, rank, left);
      std::copy_n(index, rank, right);
      T total = 0;
      for (int64_t k = 0; k < a.dim(rank - 1); ++k) {
        left[rank - 1] = right[rank - 2] = k;
        total = prelude::ep_add(total, prelude::ep_mul(a.get<T>(left), b.get<T>(right)));
      }
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
  const ep_convolution_attributes& attributes = call.desc.attributes.convolution;
  const bool transposed = attributes.transposed != 0;
  const int32_t rank = src.rank();
  const int64_t out_per_group = dst.dim(1) / attributes.groups;
  const int64_t in_per_group = src.dim(1) / attributes.groups;
  const auto kernel = weight.dims().subspan(2);

  for_each_index(dst.dims(), [&](const int64_t* out) {
    const int64_t group = out[1] / out_per_group;
    double total = 0;
    for (int64_t channel = 0; channel < in_per_group; ++channel) {
      for_each_index(kernel, [&](const int64_t* taps) {
        int64_t in[EP_MAX_RANK] = {out[0], group * in_per_group + channel};
        int64_t w[EP_MAX_RANK] = {transposed ? in[1] : out[1], transposed ? out[1] % out_per_group : channel};
        for (int32_t i = 0; i < rank - 2; ++i) {
          const Tap tap = tap_at(attributes, i, out[i + 2], taps[i], src.dim(i + 2));
          if (!tap.inside) return;
          in[i + 2] = tap.position;
          w[i + 2] = taps[i];
        }
        total += src.get<double>(in) * weight.get<double>(w);
      });
    }
    if (bias) total += bias.get<double>(out + 1);
    dst.set(out, with_epilogues(call, total, out));
  });
}

}  // namespace tenon::reference
