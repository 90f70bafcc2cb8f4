// quantize_linear, dequantize_linear, and products and sums of quantised operands. A scale or zero point of rank 0 is
// one number.
#include "core/ops/rules/quantisation.h"

#include <initializer_list>

#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/sym_call.h"
#include "primitives/infer/broadcast-inl.h"
#include "primitives/infer/broadcast.h"
#include "primitives/infer/convolution-inl.h"
#include "primitives/infer/matmul-inl.h"

namespace tenon::ops {
namespace {

// Inputs of products and sums: each factor with its scale and zero point, then optionally a bias, then scale and zero
// point of the result.
enum : size_t { kLeft, kLeftScale, kLeftZero, kRight, kRightScale, kRightZero, kBias, kScale, kZero };

bool is_real(DType dtype) { return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16; }

// True for integers of 2 to 16 bits, which can be quantised numbers.
bool is_narrow(DType dtype) { return is_integer(dtype) && dtype_info(dtype).bits <= 16; }

// For a record that no functor made. Its first two inputs are given.
template <class Call>
Status require_given(const Call& call, std::initializer_list<size_t> inputs) {
  for (const size_t i : inputs) {
    if (call.inputs[i] == nullptr) return infer::wrong(call.op->name, "argument {} is absent.", i);
  }
  return {};
}

template <class Call>
Status require_narrow(const Call& call, std::string_view name, DType dtype) {
  if (is_narrow(dtype)) return {};
  return infer::wrong(call.op->name, "{} is {}; it must be an integer of 2 to 16 bits.", name, dtype_name(dtype));
}

// Ok if the dtypes of factor, scale and zero point from input `first` on agree.
template <class Call>
Status require_factor(const Call& call, size_t first, std::string_view name) {
  const DType dtype = call.inputs[first]->dtype();
  TENON_RETURN_IF_ERROR(require_parameter_dtypes(call, first + 1, first + 2, dtype));
  const bool quantised = call.inputs[first + 1] != nullptr || call.inputs[first + 2] != nullptr;
  if (is_narrow(dtype) || (is_real(dtype) && !quantised)) return {};
  return infer::wrong(call.op->name,
                      "{} is {}{}; it must be an integer of 2 to 16 bits, or f32, f16 or bf16 without a scale.", name,
                      dtype_name(dtype), quantised ? " with a scale or zero point" : "");
}

// Ok if the result of dtype `dtype` fits the factors and the scale and zero point of the result.
template <class Call>
Status require_result(const Call& call, DType dtype) {
  const auto& in = call.inputs;
  const std::string_view op = call.op->name;
  for (size_t i : {kScale, kZero}) TENON_RETURN_IF_ERROR(require_parameter(call, i, "scale or zero_point", {}, 0, 0));
  const bool to_numbers = in[kScale] != nullptr || in[kZero] != nullptr;
  if (to_numbers) {
    TENON_RETURN_IF_ERROR(require_narrow(call, "dtype", dtype));
    TENON_RETURN_IF_ERROR(require_parameter_dtypes(call, kScale, kZero, dtype));
  }
  const bool scaled = in[kLeftScale] != nullptr || in[kRightScale] != nullptr;
  const bool sums = is_integer(in[kLeft]->dtype()) && is_integer(in[kRight]->dtype()) && !scaled;
  if (!to_numbers && !is_real(dtype) && (dtype != DType::i32 || !sums || in[kBias] != nullptr)) {
    return infer::wrong(op,
                        "dtype is {}; it must be f32, f16, bf16, of integers without scales and bias i32, or an "
                        "integer of 2 to 16 bits with a scale or zero_point.",
                        dtype_name(dtype));
  }
  const bool quantised = scaled || to_numbers || in[kLeftZero] != nullptr || in[kRightZero] != nullptr;
  if (!quantised) return infer::wrong(op, "no scale and no zero point is given.");
  if (!sums) {
    for (size_t i : {kLeft, kRight}) {
      if (is_real(in[i]->dtype()) || in[i + 1] != nullptr || in[i + 2] != nullptr) continue;
      return infer::wrong(op, "{} is {} but has neither a scale nor a zero point.",
                          i == kLeft ? "input" : "the other factor", dtype_name(in[i]->dtype()));
    }
  }
  if (in[kBias] == nullptr) return {};
  return require_dtype(call, kBias, "bias", to_numbers ? DType::f32 : dtype);
}

template <class T>
BasicDims<T> last_of(const BasicDims<T>& dims, int32_t count) {
  BasicDims<T> last;
  for (int32_t axis = dims.rank() - count; axis < dims.rank(); ++axis) last.push_back(dims[axis]);
  return last;
}

// The axis, of the last two of a matmul's right factor, along which its scales vary if they have one axis or two.
constexpr int32_t axis_of_columns(int32_t parameter_rank) { return parameter_rank == 1 ? 1 : 0; }

Dims ones(int32_t rank) { return Dims::filled(rank, 1); }

// A product of matrices, folded: dims [m, n], or [batch, m, n] if the batch cannot be merged into the rows.
struct Folded {
  Dims dims, dst, left, right;
};

Folded fold(const OpCall& call, const infer::MatmulShape& shape, const TensorMeta& output) {
  const auto view = [](const Tensor& tensor) { return infer::View{tensor.dims(), tensor.strides(), 0}; };
  Folding folding(shape.full);
  folding.add(output.strides);
  folding.add(infer::matmul_left(shape, view(*call.inputs[kLeft])).strides);
  folding.add(infer::matmul_right(shape, view(*call.inputs[kRight])).strides);
  folding.fold_batch();
  Folded folded{folding.dims(), folding.strides(0), folding.strides(1), folding.strides(2)};
  if (folded.dims.rank() != 3 || folded.right[0] != 0) return folded;
  const int64_t rows = folded.dims[1];
  for (const Dims* strides : {&folded.dst, &folded.left}) {
    if (rows != 1 && (*strides)[0] != rows * (*strides)[1]) return folded;
  }
  for (Dims* strides : {&folded.dst, &folded.left}) {
    if (rows == 1) (*strides)[1] = (*strides)[0];
    strides->erase(0);
  }
  folded.right.erase(0);
  folded.dims[1] *= folded.dims[0];
  folded.dims.erase(0);
  return folded;
}

// Lowers a scale or zero point of a matmul's right factor, over its last two axes.
void lower_columns(const OpCall& call, int index, int32_t role, int32_t rank, int64_t block, ep_quantisation* how,
                   Lowering* lowering) {
  const Tensor* given = call.inputs[static_cast<size_t>(index)];
  if (given == nullptr) return;
  const int32_t axis = rank - 2 + axis_of_columns(given->rank());
  if (given->rank() < 2) return lower_parameter(call, index, role, rank, axis, 0, how, lowering);
  Dims dims = ones(rank), strides = ones(rank);
  for (int32_t i = 0; i < 2; ++i) {
    dims[rank - 2 + i] = given->dims()[i];
    if (given->dims()[i] != 1) strides[rank - 2 + i] = given->strides()[i];
  }
  *how = {uint32_t{3} << (rank - 2), rank - 2, {static_cast<int32_t>(block), 0}};
  lowering->input(role, index, given->dtype(), dims, strides);
}

// Lowers the scales and zero points of the result and of the left factor, one number each.
void lower_left(const OpCall& call, int32_t rank, Lowering* lowering) {
  lower_parameter(call, kLeftScale, EP_ROLE_SRC_SCALE, rank, 0, 0, nullptr, lowering);
  lower_parameter(call, kLeftZero, EP_ROLE_SRC_ZERO_POINT, rank, 0, 0, nullptr, lowering);
}
void lower_result(const OpCall& call, size_t first, int32_t rank, Lowering* lowering) {
  lower_parameter(call, static_cast<int>(first), EP_ROLE_DST_SCALE, rank, 0, 0, nullptr, lowering);
  lower_parameter(call, static_cast<int>(first) + 1, EP_ROLE_DST_ZERO_POINT, rank, 0, 0, nullptr, lowering);
}

}  // namespace

void lower_parameter(const OpCall& call, int index, int32_t role, int32_t rank, int32_t axis, int64_t block,
                     ep_quantisation* how, Lowering* lowering) {
  const Tensor* given = call.inputs[static_cast<size_t>(index)];
  if (given == nullptr) return;
  Dims dims = ones(rank), strides = ones(rank);
  const Spread spread = spread_of(given->rank(), rank, block);
  if (spread == Spread::along_axis) {
    dims[axis] = given->dims()[0];
    strides[axis] = list_strides(*given)[0];
    *how = {uint32_t{1} << axis, 0, {0, 0}};
  }
  if (spread == Spread::in_blocks) {
    dims = given->dims();
    strides = given->strides();
    *how = {(uint32_t{1} << rank) - 1, axis, {static_cast<int32_t>(block), 0}};
  }
  lowering->input(role, index, given->dtype(), dims, strides);
}

// Inputs: input, scale, zero point or null.
template <class Call>
Status infer_quantisation(const Call& call, typename Call::Meta* outputs) {
  const auto& at = call.template attributes_as<QuantisationAttributes>();
  const auto& dims = call.inputs[0]->dims();
  const DType given = call.inputs[0]->dtype();
  const bool to_numbers = call.op->kind == EP_PRIMITIVE_quantise;
  const DType numbers = to_numbers ? at.dtype : given, real = to_numbers ? given : at.dtype;
  if (!is_real(real)) {
    return infer::wrong(call.op->name, "{} is {}; it must be f32, f16 or bf16.", to_numbers ? "input" : "dtype",
                        dtype_name(real));
  }
  if (to_numbers || numbers != DType::i32) {
    TENON_RETURN_IF_ERROR(require_narrow(call, to_numbers ? "dtype" : "input", numbers));
  }
  if (const int64_t block = at.block; block < 0 || block > INT32_MAX) {
    return infer::wrong(call.op->name, "block_size is {}.", block);
  }
  TENON_RETURN_IF_ERROR(require_parameter_dtypes(call, 1, 2, numbers));
  TENON_RETURN_IF_ERROR(require_parameter(call, 1, "scale", dims, at.axis, at.block));
  TENON_RETURN_IF_ERROR(require_parameter(call, 2, "zero_point", dims, at.axis, at.block));
  outputs->dtype = at.dtype;
  outputs->dims = dims;
  return {};
}

namespace {

// One input and one output. Their axes are not folded if the scales vary along one.
Status lower_conversion(const OpCall& call, const TensorMeta& output, int32_t scale_role, ep_quantisation* how,
                        Lowering* lowering) {
  const auto& at = call.attributes_as<QuantisationAttributes>();
  const Tensor& input = *call.inputs[0];
  const bool one = call.inputs[1]->rank() == 0 && (call.inputs[2] == nullptr || call.inputs[2]->rank() == 0);
  Dims dims = input.dims(), dst = output.strides, src = input.strides();
  if (one) {
    Folding folding(dims);
    folding.add(dst);
    folding.add(src);
    folding.fold_elementwise();
    dims = folding.dims(), dst = folding.strides(0), src = folding.strides(1);
  }
  lowering->output(EP_ROLE_DST, 0, output.dtype, dims, dst);
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), dims, src);
  lower_parameter(call, 1, scale_role, dims.rank(), at.axis, at.block, how, lowering);
  lower_parameter(call, 2, scale_role + 1, dims.rank(), at.axis, at.block, how, lowering);
  return {};
}

}  // namespace

Status lower_quantise(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  return lower_conversion(call, outputs[0], EP_ROLE_DST_SCALE, &lowering->desc.attributes.quantise.dst, lowering);
}

Status lower_dequantise(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  return lower_conversion(call, outputs[0], EP_ROLE_SRC_SCALE, &lowering->desc.attributes.dequantise.src, lowering);
}

template <class Call>
Status infer_quantized_matmul(const Call& call, typename Call::Meta* outputs) {
  const auto& at = call.template attributes_as<QuantizedProductAttributes>();
  const std::string_view op = call.op->name;
  TENON_RETURN_IF_ERROR(require_given(call, {kLeft, kRight}));
  const auto& a = call.inputs[kLeft]->dims();
  const auto& b = call.inputs[kRight]->dims();
  if (a.rank() < 2 || b.rank() < 2) return infer::wrong(op, "shapes {} and {} must have rank at least 2.", a, b);
  TENON_ASSIGN_OR_RETURN(const auto shape, infer::matmul<typename Call::Size>(op, a, b));
  if (!expect(shape.k >= 1)) return infer::wrong(op, "input of shape {} has rows of no elements.", a);
  TENON_RETURN_IF_ERROR(require_factor(call, kLeft, "input"));
  TENON_RETURN_IF_ERROR(require_factor(call, kRight, "other"));
  if (at.block < 0) return infer::wrong(op, "block_size is {}.", at.block);
  for (size_t i : {kLeftScale, kLeftZero}) {
    TENON_RETURN_IF_ERROR(require_parameter(call, i, "input_scale or input_zero_point", {}, 0, 0));
  }
  for (size_t i : {kRightScale, kRightZero}) {
    if (call.inputs[i] == nullptr) continue;
    const int32_t rank = call.inputs[i]->rank();
    if (rank == 2 && b.rank() != 2) return infer::wrong(op, "blocks of other of shape {} need rank 2.", b);
    TENON_RETURN_IF_ERROR(require_parameter(call, i, "other_scale or other_zero_point", last_of(b, 2),
                                            axis_of_columns(rank), rank == 1 ? 0 : at.block));
  }
  TENON_RETURN_IF_ERROR(require_result(call, at.dtype));
  if (call.inputs[kBias] != nullptr) TENON_RETURN_IF_ERROR(require_shape(call, kBias, "bias", {shape.n}));
  outputs->dtype = at.dtype;
  outputs->dims = shape.dims;
  return {};
}

Status lower_quantized_matmul(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const auto& at = call.attributes_as<QuantizedProductAttributes>();
  TENON_ASSIGN_OR_RETURN(const infer::MatmulShape shape,
                         infer::matmul(call.op->name, call.inputs[kLeft]->dims(), call.inputs[kRight]->dims()));
  const Folded folded = fold(call, shape, outputs[0]);
  const int32_t rank = folded.dims.rank();
  Dims left = folded.dims, right = folded.dims;
  left[rank - 1] = right[rank - 2] = shape.k;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, folded.dims, folded.dst);
  lowering->input(EP_ROLE_SRC, kLeft, call.inputs[kLeft]->dtype(), left, folded.left);
  lowering->input(EP_ROLE_SRC_B, kRight, call.inputs[kRight]->dtype(), right, folded.right);
  if (const Tensor* bias = call.inputs[kBias]) {
    Dims strides = Dims::filled(rank, 0);
    strides[rank - 1] = list_strides(*bias)[0];
    lowering->input(EP_ROLE_BIAS, kBias, bias->dtype(), folded.dims, strides);
  }
  ep_quantisation* how = &lowering->desc.attributes.matmul.weight;
  lower_left(call, rank, lowering);
  lower_columns(call, kRightScale, EP_ROLE_WEIGHT_SCALE, rank, at.block, how, lowering);
  lower_columns(call, kRightZero, EP_ROLE_WEIGHT_ZERO_POINT, rank, at.block, how, lowering);
  lower_result(call, kScale, rank, lowering);
  return {};
}

template <class Call>
Status infer_quantized_convolution(const Call& call, typename Call::Meta* outputs) {
  const auto& at = call.template attributes_as<QuantizedConvolutionAttributes>();
  TENON_RETURN_IF_ERROR(require_given(call, {kLeft, kRight}));
  const auto* bias = call.inputs[kBias];
  const auto low = sizes_of(call, at.window.pad_low, 3);
  const auto high = sizes_of(call, at.window.pad_high, 3);
  if (at.window.transposed != 0) return infer::wrong(call.op->name, "transposed is {}.", at.window.transposed);
  TENON_ASSIGN_OR_RETURN(outputs->dims, infer::convolution<typename Call::Size>(
                                            call.op->name, call.inputs[kLeft]->dims(), call.inputs[kRight]->dims(),
                                            bias == nullptr ? nullptr : &bias->dims(), at.window, low, high, {}));
  TENON_RETURN_IF_ERROR(require_factor(call, kLeft, "input"));
  TENON_RETURN_IF_ERROR(require_factor(call, kRight, "weight"));
  for (size_t i : {kLeftScale, kLeftZero}) {
    TENON_RETURN_IF_ERROR(require_parameter(call, i, "input_scale or input_zero_point", {}, 0, 0));
  }
  for (size_t i : {kRightScale, kRightZero}) {
    TENON_RETURN_IF_ERROR(
        require_parameter(call, i, "weight_scale or weight_zero_point", call.inputs[kRight]->dims(), 0, 0));
  }
  outputs->dtype = at.dtype;
  return require_result(call, at.dtype);
}

Status lower_quantized_convolution(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const auto& at = call.attributes_as<QuantizedConvolutionAttributes>();
  const int32_t rank = outputs[0].dims.rank();
  lowering->desc.attributes.convolution = at.window;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, outputs[0].dims, outputs[0].strides);
  const auto add = [&](int32_t role, int index) {
    const Tensor& tensor = *call.inputs[static_cast<size_t>(index)];
    lowering->input(role, index, tensor.dtype(), tensor.dims(), tensor.strides());
  };
  add(EP_ROLE_SRC, kLeft);
  add(EP_ROLE_WEIGHT, kRight);
  if (const Tensor* bias = call.inputs[kBias]) {
    lowering->input(EP_ROLE_BIAS, kBias, bias->dtype(), bias->dims(), list_strides(*bias));
  }
  ep_quantisation* how = &lowering->desc.attributes.convolution.weight;
  lower_left(call, rank, lowering);
  lower_parameter(call, kRightScale, EP_ROLE_WEIGHT_SCALE, rank, 0, 0, how, lowering);
  lower_parameter(call, kRightZero, EP_ROLE_WEIGHT_ZERO_POINT, rank, 0, 0, how, lowering);
  lower_result(call, kScale, rank, lowering);
  return {};
}

// Inputs: two tensors, each with a scale and optionally a zero point; scale and zero point of the result.
template <class Call>
Status infer_quantized_binary(const Call& call, typename Call::Meta* outputs) {
  const auto& at = call.template attributes_as<QuantizedBinaryAttributes>();
  const std::string_view op = call.op->name;
  TENON_RETURN_IF_ERROR(require_given(call, {0, 1, 3, 4, 6}));
  TENON_RETURN_IF_ERROR(require_narrow(call, "dtype", at.dtype));
  if (at.op != EP_BINARY_add && at.op != EP_BINARY_mul) return infer::wrong(op, "its function is {}.", at.op);
  for (size_t i : {0, 3}) {
    TENON_RETURN_IF_ERROR(require_narrow(call, i == 0 ? "input" : "other", call.inputs[i]->dtype()));
    TENON_RETURN_IF_ERROR(require_parameter_dtypes(call, i + 1, i + 2, call.inputs[i]->dtype()));
  }
  TENON_RETURN_IF_ERROR(require_parameter_dtypes(call, 6, 7, at.dtype));
  for (size_t i : {1, 2, 4, 5, 6, 7}) {
    TENON_RETURN_IF_ERROR(require_parameter(call, i, "a scale or zero point", {}, 0, 0));
  }
  TENON_ASSIGN_OR_RETURN(outputs->dims,
                         infer::broadcast<typename Call::Size>(op, call.inputs[0]->dims(), call.inputs[3]->dims()));
  outputs->dtype = at.dtype;
  return {};
}

Status lower_quantized_binary(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  Folding folding(outputs[0].dims);
  folding.add(outputs[0].strides);
  for (size_t i : {0, 3}) {
    const Tensor& each = *call.inputs[i];
    folding.add(infer::broadcast_strides(each.dims(), each.strides(), outputs[0].dims));
  }
  folding.fold_elementwise();
  const Dims dims = folding.dims();
  lowering->desc.attributes.binary.op = call.attributes_as<QuantizedBinaryAttributes>().op;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, dims, folding.strides(0));
  lowering->input(EP_ROLE_SRC, 0, call.inputs[0]->dtype(), dims, folding.strides(1));
  lowering->input(EP_ROLE_SRC_B, 3, call.inputs[3]->dtype(), dims, folding.strides(2));
  lower_left(call, dims.rank(), lowering);
  lower_parameter(call, 4, EP_ROLE_WEIGHT_SCALE, dims.rank(), 0, 0, nullptr, lowering);
  lower_parameter(call, 5, EP_ROLE_WEIGHT_ZERO_POINT, dims.rank(), 0, 0, nullptr, lowering);
  lower_result(call, 6, dims.rank(), lowering);
  return {};
}

template Status infer_quantisation(const OpCall&, TensorMeta*);
template Status infer_quantisation(const SymCall&, SymMeta*);
template Status infer_quantized_matmul(const OpCall&, TensorMeta*);
template Status infer_quantized_matmul(const SymCall&, SymMeta*);
template Status infer_quantized_convolution(const OpCall&, TensorMeta*);
template Status infer_quantized_convolution(const SymCall&, SymMeta*);
template Status infer_quantized_binary(const OpCall&, TensorMeta*);
template Status infer_quantized_binary(const SymCall&, SymMeta*);

}  // namespace tenon::ops
