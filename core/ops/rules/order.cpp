// Rules of scans, sorts, unique, nonzero and one_hot.
#include "core/ops/attributes.h"
#include "core/ops/rules.h"
#include "core/ops/rules/folding.h"
#include "core/ops/rules/guards.h"
#include "core/ops/sym_call.h"
#include "primitives/infer/assemble-inl.h"

namespace tenon::ops {
namespace {

template <class Call>
using DimsOf = BasicDims<typename Call::Size>;

template <class Call>
void like_input(const Call& call, typename Call::Meta* output, DType dtype) {
  output->dtype = dtype;
  output->dims = call.inputs[0]->dims();
}

template <class Call>
Status list_of(const Call& call, typename Call::Meta* output, typename Call::Size length) {
  static_cast<void>(call);
  output->dtype = DType::i64;
  output->dims = DimsOf<Call>{length};
  return {};
}

// The operands of a kind along one axis, folded: outputs, then SRC. Returns the new position of the axis.
int32_t lower_along(const OpCall& call, std::span<const TensorMeta> outputs, std::span<const int32_t> roles,
                    int32_t axis, Lowering* lowering) {
  const Tensor& input = *call.inputs[0];
  Folding folding(input.dims());
  for (const TensorMeta& output : outputs) folding.add(output.strides);
  folding.add(input.strides());
  const int32_t folded = folding.fold_around(axis);
  for (size_t i = 0; i < outputs.size(); ++i) {
    lowering->output(roles[i], static_cast<int>(i), outputs[i].dtype, folding.dims_with(folded, outputs[i].dims[axis]),
                     folding.strides(i));
  }
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), folding.dims(), folding.strides(outputs.size()));
  return folded;
}

template <class Call>
Status check_scan(const Call& call, bool positions) {
  const ep_scan_attributes& at = call.template attributes_as<ScanAttributes>().scan;
  const DType dtype = call.inputs[0]->dtype();
  const bool selects = at.op == EP_SCAN_MAX || at.op == EP_SCAN_MIN;
  TENON_RETURN_IF_ERROR(require_axis(call, at.axis, call.inputs[0]->rank()));
  TENON_RETURN_IF_ERROR(require_choice(call, "op", at.op, EP_SCAN_SUM, EP_SCAN_LOG_SUM_EXP));
  TENON_RETURN_IF_ERROR(require_flag(call, "exclusive", at.exclusive));
  TENON_RETURN_IF_ERROR(require_flag(call, "reverse", at.reverse));
  if (at.op == EP_SCAN_LOG_SUM_EXP) TENON_RETURN_IF_ERROR(require_floating(call, 0, "input"));
  if (!selects && dtype == DType::boolean) {
    return infer::wrong(call.op->name, "input is bool, on which scan {} is not defined.", at.op);
  }
  if (!positions || (selects && at.exclusive == 0)) return {};
  return infer::wrong(call.op->name, "scan {} with exclusive {} returns no positions; only max and min do.", at.op,
                      at.exclusive);
}

template <class Call>
Status check_sort(const Call& call) {
  const ep_sort_attributes& at = call.template attributes_as<SortAttributes>().sort;
  TENON_RETURN_IF_ERROR(require_axis(call, at.axis, call.inputs[0]->rank()));
  return require_flag(call, "descending", at.descending);
}

// Ok if the input has an axis, as its primitive requires.
template <class Call>
Status require_axes(const Call& call) {
  if (call.inputs[0]->rank() > 0) return {};
  return infer::wrong(call.op->name, "input has rank 0; it must have at least 1.");
}

// Like the check above, and the input has at least one element.
template <class Call>
Status require_some(const Call& call) {
  const auto& dims = call.inputs[0]->dims();
  TENON_RETURN_IF_ERROR(require_axes(call));
  for (const auto& dim : dims) {
    if (!expect(dim >= 1)) return infer::wrong(call.op->name, "input of shape {} has no elements.", dims);
  }
  return {};
}

constexpr int32_t kValuesAndPositions[] = {EP_ROLE_DST, EP_ROLE_DST_INDICES};
constexpr int32_t kPositions[] = {EP_ROLE_DST_INDICES};

}  // namespace

template <class Call>
Status infer_scan(const Call& call, typename Call::Meta* outputs) {
  TENON_RETURN_IF_ERROR(check_scan(call, false));
  like_input(call, outputs, call.inputs[0]->dtype());
  return {};
}

template <class Call>
Status infer_scan_with_positions(const Call& call, typename Call::Meta* outputs) {
  TENON_RETURN_IF_ERROR(check_scan(call, true));
  like_input(call, outputs, call.inputs[0]->dtype());
  like_input(call, outputs + 1, DType::i64);
  return {};
}

Status lower_scan(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const ep_scan_attributes& at = call.attributes_as<ScanAttributes>().scan;
  const int32_t axis = lower_along(call, outputs, kValuesAndPositions, at.axis, lowering);
  lowering->desc.attributes.scan = at;
  lowering->desc.attributes.scan.axis = axis;
  return {};
}

template <class Call>
Status infer_sort(const Call& call, typename Call::Meta* outputs) {
  TENON_RETURN_IF_ERROR(check_sort(call));
  like_input(call, outputs, call.inputs[0]->dtype());
  like_input(call, outputs + 1, DType::i64);
  return {};
}

template <class Call>
Status infer_argsort(const Call& call, typename Call::Meta* outputs) {
  TENON_RETURN_IF_ERROR(check_sort(call));
  like_input(call, outputs, DType::i64);
  return {};
}

Status lower_sort(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const ep_sort_attributes& at = call.attributes_as<SortAttributes>().sort;
  const std::span<const int32_t> roles =
      outputs.size() == 1 ? std::span<const int32_t>(kPositions) : std::span<const int32_t>(kValuesAndPositions);
  const int32_t axis = lower_along(call, outputs, roles, at.axis, lowering);
  lowering->desc.attributes.sort = {axis, at.descending};
  return {};
}

template <class Call>
Status infer_top_k(const Call& call, typename Call::Meta* outputs) {
  const auto& at = call.template attributes_as<TopKAttributes>();
  const auto k = size_of(call, at.k);
  const int32_t axis = at.top_k.axis;
  TENON_RETURN_IF_ERROR(require_axis(call, axis, call.inputs[0]->rank()));
  TENON_RETURN_IF_ERROR(require_flag(call, "largest", at.top_k.largest));
  if (!expect(k >= 0) || !expect(k <= call.inputs[0]->dims()[axis])) {
    return infer::wrong(call.op->name, "k is {}, but axis {} has {} elements.", k, axis, call.inputs[0]->dims()[axis]);
  }
  like_input(call, outputs, call.inputs[0]->dtype());
  like_input(call, outputs + 1, DType::i64);
  outputs[0].dims[axis] = outputs[1].dims[axis] = k;
  return {};
}

Status lower_top_k(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const ep_top_k_attributes& at = call.attributes_as<TopKAttributes>().top_k;
  const int32_t axis = lower_along(call, outputs, kValuesAndPositions, at.axis, lowering);
  lowering->desc.attributes.top_k = {axis, at.largest};
  return {};
}

template <class Call>
Status infer_unique(const Call& call, typename Call::Meta* outputs) {
  const auto& at = call.template attributes_as<UniqueListsAttributes>();
  const auto& dims = call.inputs[0]->dims();
  const int32_t axis = at.unique.axis;
  TENON_RETURN_IF_ERROR(require_some(call));
  if (axis != -1) TENON_RETURN_IF_ERROR(require_axis(call, axis, dims.rank()));
  TENON_RETURN_IF_ERROR(require_choice(call, "order", at.unique.order, EP_UNIQUE_SORTED, EP_UNIQUE_CONSECUTIVE));
  for (const int32_t wanted : {at.index, at.inverse, at.counts}) {
    TENON_RETURN_IF_ERROR(require_flag(call, "a list", wanted));
  }
  if constexpr (std::is_same_v<Call, SymCall>) {
    const size_t results = 2 + static_cast<size_t>(at.index + at.inverse + at.counts);
    if (call.output_count != results) {
      return infer::wrong(call.op->name, "has {} results, but its lists make {}.", call.output_count, results);
    }
  }
  const auto n = axis < 0 ? element_count(dims) : dims[axis];
  like_input(call, outputs, call.inputs[0]->dtype());
  if (axis < 0) outputs[0].dims = DimsOf<Call>{n};
  TENON_RETURN_IF_ERROR(list_of(call, outputs + 1, 1));
  size_t next = 2;
  for (const int32_t wanted : {at.index, at.inverse, at.counts}) {
    if (wanted != 0) TENON_RETURN_IF_ERROR(list_of(call, outputs + next++, n));
  }
  return {};
}

Status lower_unique(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const auto& at = call.attributes_as<UniqueListsAttributes>();
  const Tensor& input = *call.inputs[0];
  const auto add = [&](int32_t role, int32_t index) {
    const TensorMeta& output = outputs[static_cast<size_t>(index)];
    lowering->output(role, index, output.dtype, output.dims, output.strides);
  };
  lowering->desc.attributes.unique = at.unique;
  add(EP_ROLE_DST, 0);
  int32_t next = 2;
  if (at.index != 0) add(EP_ROLE_DST_INDICES, next++);
  add(EP_ROLE_DST_COUNT, 1);
  if (at.inverse != 0) add(EP_ROLE_DST_INVERSE, next++);
  if (at.counts != 0) add(EP_ROLE_DST_COUNTS, next++);
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), input.dims(), input.strides());
  return {};
}

template <class Call>
Status infer_nonzero(const Call& call, typename Call::Meta* outputs) {
  const auto size = size_of(call, call.template attributes_as<RowCountAttributes>().size);
  TENON_RETURN_IF_ERROR(require_some(call));
  if (!expect(size >= 1)) return infer::wrong(call.op->name, "size is {}; it must be at least 1.", size);
  outputs[0].dtype = DType::i64;
  outputs[0].dims = DimsOf<Call>{size, typename Call::Size(call.inputs[0]->rank())};
  TENON_RETURN_IF_ERROR(checked_numbers(call, outputs[0].dims));
  return list_of(call, outputs + 1, 1);
}

Status lower_nonzero(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const Tensor& input = *call.inputs[0];
  lowering->output(EP_ROLE_DST, 0, DType::i64, outputs[0].dims, outputs[0].strides);
  lowering->output(EP_ROLE_DST_COUNT, 1, DType::i64, outputs[1].dims, outputs[1].strides);
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), input.dims(), input.strides());
  return {};
}

template <class Call>
Status infer_one_hot(const Call& call, typename Call::Meta* outputs) {
  const auto& at = call.template attributes_as<DepthAttributes>();
  const auto depth = size_of(call, at.depth);
  const int32_t rank = call.inputs[0]->rank();
  TENON_RETURN_IF_ERROR(require_axes(call));
  if (rank == EP_MAX_RANK)
    return infer::wrong(call.op->name, "input has rank {}; the result would have more axes than a tensor can.", rank);
  TENON_RETURN_IF_ERROR(require_axis(call, at.axis, rank + 1));
  if (!expect(depth >= 0)) return infer::wrong(call.op->name, "depth is {}; it must be at least 0.", depth);
  if (at.dtype == DType::none) return infer::wrong(call.op->name, "has no dtype for its result.");
  like_input(call, outputs, at.dtype);
  outputs->dims.insert(at.axis, depth);
  return checked_numbers(call, outputs->dims);
}

Status lower_one_hot(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const Tensor& input = *call.inputs[0];
  lowering->desc.attributes.one_hot.axis = call.attributes_as<DepthAttributes>().axis;
  lowering->scalar_dtypes[0] = lowering->scalar_dtypes[1] = outputs[0].dtype;
  lowering->output(EP_ROLE_DST, 0, outputs[0].dtype, outputs[0].dims, outputs[0].strides);
  lowering->input(EP_ROLE_SRC, 0, input.dtype(), input.dims(), input.strides());
  return {};
}

template Status infer_argsort(const OpCall&, TensorMeta*);
template Status infer_argsort(const SymCall&, SymMeta*);
template Status infer_nonzero(const OpCall&, TensorMeta*);
template Status infer_nonzero(const SymCall&, SymMeta*);
template Status infer_one_hot(const OpCall&, TensorMeta*);
template Status infer_one_hot(const SymCall&, SymMeta*);
template Status infer_scan(const OpCall&, TensorMeta*);
template Status infer_scan(const SymCall&, SymMeta*);
template Status infer_scan_with_positions(const OpCall&, TensorMeta*);
template Status infer_scan_with_positions(const SymCall&, SymMeta*);
template Status infer_sort(const OpCall&, TensorMeta*);
template Status infer_sort(const SymCall&, SymMeta*);
template Status infer_top_k(const OpCall&, TensorMeta*);
template Status infer_top_k(const SymCall&, SymMeta*);
template Status infer_unique(const OpCall&, TensorMeta*);
template Status infer_unique(const SymCall&, SymMeta*);

}  // namespace tenon::ops
