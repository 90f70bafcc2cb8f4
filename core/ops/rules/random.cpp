// The rule of random: numbers are counted in row-major order.
#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/rules/guards.h"
#include "core/ops/sym_call.h"

namespace tenon::ops {

template <class Call>
Status infer_random(const Call& call, typename Call::Meta* outputs) {
  const auto& attributes = call.template attributes_as<RandomAttributes>();
  const DType dtype = attributes.dtype;
  const bool bits = attributes.distribution == EP_RANDOM_BITS;
  TENON_RETURN_IF_ERROR(
      require_choice(call, "distribution", attributes.distribution, EP_RANDOM_UNIFORM, EP_RANDOM_BITS));
  const bool normal = attributes.distribution == EP_RANDOM_NORMAL;
  if (bits ? !is_integer(dtype) || dtype_size(dtype) < 4 : !is_floating(dtype) || (normal && dtype == DType::f64)) {
    return infer::wrong(call.op->name, "dtype is {}; it must be {}.", dtype_name(dtype),
                        bits     ? "i32, u32, i64 or u64"
                        : normal ? "f32, f16 or bf16"
                                 : "floating-point");
  }
  const auto sizes = sizes_of(call, attributes.dims);
  outputs->dtype = attributes.dtype;
  outputs->dims = BasicDims<typename Call::Size>(std::span<const typename Call::Size>(sizes));
  return checked_numbers(call, outputs->dims);
}

Status lower_random(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const TensorMeta& output = outputs[0];
  const bool dense = output.strides == contiguous_strides(output.dims);
  lowering->desc.attributes.random.distribution = call.attributes_as<RandomAttributes>().distribution;
  lowering->scalar_dtypes[0] = lowering->scalar_dtypes[1] = DType::u64;
  lowering->output(EP_ROLE_DST, 0, output.dtype, dense ? Dims{element_count(output.dims)} : output.dims,
                   dense ? Dims{1} : output.strides);
  return {};
}

template Status infer_random(const OpCall&, TensorMeta*);
template Status infer_random(const SymCall&, SymMeta*);

}  // namespace tenon::ops
