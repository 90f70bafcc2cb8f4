// The rule of fft.
#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/sym_call.h"

namespace tenon::ops {

template <class Call>
Status infer_fourier(const Call& call, typename Call::Meta* outputs) {
  const auto& attributes = call.template attributes_as<FourierAttributes>();
  outputs->dtype = call.inputs[0]->dtype();
  outputs->dims = call.inputs[0]->dims();
  if (attributes.transform.form == EP_FFT_COMPLEX) return {};
  outputs->dims[attributes.transform.axis] = attributes.length;
  if (attributes.transform.form == EP_FFT_REAL_TO_HALF) {
    outputs->dims.push_back(2);
  } else {
    outputs->dims.resize(outputs->dims.rank() - 1);
  }
  return {};
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
