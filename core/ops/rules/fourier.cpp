// The rule of fft.
#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/rules/guards.h"
#include "core/ops/sym_call.h"

namespace tenon::ops {

template <class Call>
Status infer_fourier(const Call& call, typename Call::Meta* outputs) {
  const auto& attributes = call.template attributes_as<FourierAttributes>();
  const ep_fft_attributes& at = attributes.transform;
  const auto& dims = call.inputs[0]->dims();
  const bool from_real = at.form == EP_FFT_REAL_TO_HALF;
  const int32_t last = dims.rank() - 1;  // the axis of the pairs
  const auto length = size_of(call, attributes.length);
  TENON_RETURN_IF_ERROR(require_choice(call, "form", at.form, EP_FFT_COMPLEX, EP_FFT_HALF_TO_REAL));
  TENON_RETURN_IF_ERROR(require_choice(call, "inverse", at.inverse, 0, from_real ? 0 : 1));
  TENON_RETURN_IF_ERROR(require_axis(call, at.axis, from_real ? dims.rank() : last));
  TENON_RETURN_IF_ERROR(require_floating(call, 0, "input"));
  if (at.reserved != 0) return infer::wrong(call.op->name, "the reserved attribute is {}; it must be 0.", at.reserved);
  if (!from_real && !expect(dims[last] == 2)) {
    return infer::wrong(call.op->name, "the last axis of input of shape {} must hold pairs.", dims);
  }
  if (from_real && dims.rank() == EP_MAX_RANK) {
    return infer::wrong(call.op->name, "input has rank {}; pairs need one more axis.", dims.rank());
  }
  if (!expect(dims[at.axis] >= 1) || (at.form == EP_FFT_HALF_TO_REAL && !expect(length >= 1))) {
    return infer::wrong(call.op->name, "{} elements of shape {} make {} along axis {}; there must be at least 1.",
                        dims[at.axis], dims, length, at.axis);
  }
  const auto half = [](const typename Call::Size& n) { return floor_div(n, typename Call::Size(2)) + 1; };
  if (at.form != EP_FFT_COMPLEX &&
      !(from_real ? expect(length == half(dims[at.axis])) : expect(dims[at.axis] == half(length)))) {
    return infer::wrong(call.op->name, "axis {} of input of shape {} does not make {} elements.", at.axis, dims,
                        length);
  }
  outputs->dtype = call.inputs[0]->dtype();
  outputs->dims = dims;
  if (at.form == EP_FFT_COMPLEX) return {};
  outputs->dims[at.axis] = length;
  if (from_real) {
    outputs->dims.push_back(2);
  } else {
    outputs->dims.resize(last);
  }
  return checked_numbers(call, outputs->dims);
}

Status lower_fft(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const Tensor& input = *call.inputs[0];
  lowering->desc.attributes.fft = call.attributes_as<FourierAttributes>().transform;
  lowering->scalar_dtypes[0] = DType::f64;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, outputs[0].dims, outputs[0].strides);
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), input.dims(), input.strides());
  return {};
}

template Status infer_fourier(const OpCall&, TensorMeta*);
template Status infer_fourier(const SymCall&, SymMeta*);

}  // namespace tenon::ops
