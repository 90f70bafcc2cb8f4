// matmul and convolution. Inputs: the two factors, for a convolution a bias or null, and the tensors of the epilogues.
#include <vector>

#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/epilogue.h"
#include "core/ops/rules/folding.h"
#include "core/ops/sym_call.h"
#include "primitives/infer/broadcast.h"
#include "primitives/infer/convolution-inl.h"
#include "primitives/infer/matmul-inl.h"

namespace tenon::ops {
namespace {

template <class Call>
auto optional_input(const Call& call, size_t index) {
  return index < call.inputs.size() ? call.inputs[index] : nullptr;
}

infer::View layout(const Tensor& tensor) { return {tensor.dims(), tensor.strides(), 0}; }

// A product, folded for its descriptor: dims [batch.., m, n]; operands dst, left, right, then the operands of
// epilogues.
struct Product {
  Dims dims;
  std::vector<Dims> strides;

  // Merges the rows of all batches into one matrix, if all batches have the same right factor and the strides of every
  // other operand allow it.
  void merge_batch_into_rows() {
    if (dims.rank() != 3 || strides[2][0] != 0) return;
    for (size_t i = 0; i < strides.size(); ++i) {
      if (i != 2 && dims[1] != 1 && strides[i][0] != dims[1] * strides[i][1]) return;
    }
    for (size_t i = 0; i < strides.size(); ++i) {
      if (i != 2 && dims[1] == 1) strides[i][1] = strides[i][0];
      strides[i].erase(0);
    }
    dims[1] *= dims[0];
    dims.erase(0);
  }

  Dims with_last(int64_t rows, int64_t columns) const {
    Dims result = dims;
    result[dims.rank() - 2] = rows;
    result[dims.rank() - 1] = columns;
    return result;
  }
};

Product fold_product(const OpCall& call, const infer::MatmulShape& shape, const TensorMeta& output) {
  // A product with a vector has no epilogues and a new output, so the removed axis can be restored.
  const Dims dst = output.dims == shape.full ? output.strides : contiguous_strides(shape.full);
  Folding folding(shape.full);
  folding.add(dst);
  folding.add(infer::matmul_left(shape, layout(*call.inputs[0])).strides);
  folding.add(infer::matmul_right(shape, layout(*call.inputs[1])).strides);
  for (size_t i = 2; i < call.inputs.size(); ++i) {
    folding.add(infer::broadcast_strides(call.inputs[i]->dims(), call.inputs[i]->strides(), shape.full));
  }
  folding.fold_batch();
  Product product{folding.dims(), {}};
  for (size_t i = 0; i <= call.inputs.size(); ++i) product.strides.push_back(folding.strides(i));
  product.merge_batch_into_rows();
  return product;
}

// True if the first epilogue adds a number per column, or a single number: the bias of the primitive.
bool begins_with_bias(const OpCall& call) {
  if (call.epilogues.empty() || call.epilogues[0].op->kind != EP_PRIMITIVE_binary) return false;
  if (call.epilogues[0].op->scalar_op != EP_BINARY_add || call.epilogues[0].input < 0) return false;
  const Tensor& bias = *call.inputs[static_cast<size_t>(call.epilogues[0].input)];
  return bias.rank() == 0 || bias.dims()[bias.rank() - 1] == bias.elements();
}

// The tensors of epilogues broadcast to the result. With numbers the caller has checked that.
Status check_addends(const OpCall&, size_t, const Dims&) { return {}; }
Status check_addends(const SymCall& call, size_t first, const SymDims& dims) {
  for (size_t i = first; i < call.inputs.size(); ++i) {
    SymDims all = dims;
    if (call.inputs[i]->rank() > dims.rank() || !infer::widen(all, call.inputs[i]->dims())) {
      return infer::wrong(call.op->name, "an epilogue adds shape {} to a result of shape {}.", call.inputs[i]->dims(),
                          dims);
    }
    for (int32_t axis = 0; axis < dims.rank(); ++axis) {
      if (identical(all[axis], dims[axis]) || expect(all[axis] == dims[axis])) continue;
      return infer::wrong(call.op->name, "an epilogue adds shape {} to a result of shape {}.", call.inputs[i]->dims(),
                          dims);
    }
  }
  return {};
}

}  // namespace

template <class Call>
Status infer_matmul(const Call& call, typename Call::Meta* outputs) {
  TENON_ASSIGN_OR_RETURN(const auto shape, infer::matmul<typename Call::Size>(call.op->name, call.inputs[0]->dims(),
                                                                              call.inputs[1]->dims()));
  outputs->dtype = call.inputs[0]->dtype();
  outputs->dims = shape.dims;
  return check_addends(call, 2, outputs->dims);
}

Status lower_matmul(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  TENON_ASSIGN_OR_RETURN(const infer::MatmulShape shape,
                         infer::matmul(call.op->name, call.inputs[0]->dims(), call.inputs[1]->dims()));
  const DType dtype = outputs[0].dtype;
  const Product product = fold_product(call, shape, outputs[0]);
  const int64_t rows = product.dims[product.dims.rank() - 2];
  lowering->output(EP_ROLE_DST, 0, dtype, product.dims, product.strides[0]);
  lowering->input(EP_ROLE_SRC, 0, dtype, product.with_last(rows, shape.k), product.strides[1]);
  lowering->input(EP_ROLE_SRC_B, 1, dtype, product.with_last(shape.k, shape.n), product.strides[2]);
  const bool bias = begins_with_bias(call);
  if (bias) lowering->input(EP_ROLE_BIAS, 2, dtype, product.dims, product.strides[3]);
  lower_epilogues(call, bias ? 1 : 0, lowering, [&](size_t i) {
    return Addend{product.dims, product.strides[static_cast<size_t>(call.epilogues[i].input) + 1]};
  });
  return {};
}

template <class Call>
Status infer_convolution(const Call& call, typename Call::Meta* outputs) {
  const auto& attributes = call.template attributes_as<ConvolutionAttributes>();
  const auto* bias = optional_input(call, 2);
  std::span<const int64_t> output_padding;
  if (attributes.window.transposed != 0) {
    output_padding = {attributes.output_padding, static_cast<size_t>(attributes.window.spatial_rank)};
  }
  const auto low = sizes_of(call, attributes.window.pad_low, 3);
  const auto high = sizes_of(call, attributes.window.pad_high, 3);
  TENON_ASSIGN_OR_RETURN(outputs->dims,
                         infer::convolution<typename Call::Size>(
                             call.op->name, call.inputs[0]->dims(), call.inputs[1]->dims(),
                             bias == nullptr ? nullptr : &bias->dims(), attributes.window, low, high, output_padding));
  outputs->dtype = call.inputs[0]->dtype();
  return check_addends(call, 3, outputs->dims);
}

Status lower_convolution(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const auto& attributes = call.attributes_as<ConvolutionAttributes>();
  const DType dtype = outputs[0].dtype;
  lowering->desc.attributes.convolution = attributes.window;
  lowering->output(EP_ROLE_DST, 0, dtype, outputs[0].dims, outputs[0].strides);
  lowering->input(EP_ROLE_SRC, 0, dtype, call.inputs[0]->dims(), call.inputs[0]->strides());
  lowering->input(EP_ROLE_WEIGHT, 1, dtype, call.inputs[1]->dims(), call.inputs[1]->strides());
  if (const Tensor* bias = optional_input(call, 2)) {
    lowering->input(EP_ROLE_BIAS, 2, dtype, bias->dims(), list_strides(*bias));
  }
  lower_epilogues(call, 0, lowering, [&](size_t i) {
    const Tensor& other = *call.inputs[static_cast<size_t>(call.epilogues[i].input)];
    return Addend{outputs[0].dims, infer::broadcast_strides(other.dims(), other.strides(), outputs[0].dims)};
  });
  return {};
}

template Status infer_convolution(const OpCall&, TensorMeta*);
template Status infer_convolution(const SymCall&, SymMeta*);
template Status infer_matmul(const OpCall&, TensorMeta*);
template Status infer_matmul(const SymCall&, SymMeta*);

}  // namespace tenon::ops
