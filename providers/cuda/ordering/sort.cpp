// sort and top_k.
#include "providers/cuda/ordering/ordering.h"
#include "providers/cuda/ordering/sorter.h"

namespace tenon::provider::cuda {
namespace {

constexpr int32_t roles[row_operands] = {EP_ROLE_SRC, EP_ROLE_DST, EP_ROLE_DST_INDICES};

class SortPrimitive final : public ep_primitive {
 public:
  SortPrimitive(const ep_primitive_desc& desc, int32_t axis, bool descending, const Sorter& sorter)
      : desc_(desc), axis_(axis), descending_(descending), is_dynamic_(is_dynamic(desc)), sorter_(sorter) {
    for (int32_t i = 0; i < row_operands; ++i) places_[i] = find_operand(desc, roles[i]);
  }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    SortArguments sort = shape_arguments(launch.shapes);
    uint64_t* const addresses[row_operands] = {&sort.src, &sort.dst, &sort.dst_places};
    for (int32_t i = 0; i < row_operands; ++i) {
      if (places_[i] >= 0) *addresses[i] = address_of(launch.operands[places_[i]]);
    }
    return sorter_.run(stream, sort, address_of(launch.workspace), error);
  }

  uint64_t workspace(const ep_shape* shapes) const override {
    const SortArguments sort = shape_arguments(shapes);
    return sorter_.workspace(sort.rows.count, sort.length, sort.kept);
  }
  bool has_workspace() const override { return is_dynamic_ || workspace(nullptr) != 0; }

 private:
  SortArguments shape_arguments(const ep_shape* shapes) const {
    SortArguments sort{};
    OperandShape operands[row_operands] = {};
    for (int32_t i = 0; i < row_operands; ++i) {
      if (places_[i] < 0) continue;
      operands[i] = shape_of(desc_.operands[places_[i]], shapes, static_cast<uint32_t>(places_[i]));
      sort.strides[i] = operands[i].strides[axis_];
      sort.kept = operands[i].dims[axis_];
    }
    sort.length = operands[0].dims[axis_];
    sort.form = key_arguments(desc_.operands[places_[0]].dtype, descending_);
    sort.rows = rows_along(operands, axis_);
    return sort;
  }

  ep_primitive_desc desc_;
  int32_t axis_;
  bool descending_;
  bool is_dynamic_;
  int32_t places_[row_operands];
  Sorter sorter_;
};

constexpr uint64_t most_places = 0xffffffff;  // positions have 32 bits

Refusal why_not_sorted(const ep_primitive_desc& desc, int32_t axis, ep_support_info& info) {
  const ep_operand_desc* src = operand(desc, EP_ROLE_SRC);
  const ep_operand_desc* values = operand(desc, EP_ROLE_DST);
  const ep_operand_desc* positions = operand(desc, EP_ROLE_DST_INDICES);
  const uint32_t outputs = (values != nullptr ? 1U : 0U) + (positions != nullptr ? 1U : 0U);
  if (src == nullptr || outputs == 0 || desc.operand_count != outputs + 1)
    return Refusal::because("its operands are not SRC and DST or DST_INDICES");
  if (!has_keys(src->dtype)) return Refusal::because("no kernel compares %s", dtype_name(src->dtype));
  if (values != nullptr && values->dtype != src->dtype)
    return Refusal::because("a source of %s, a result of %s", dtype_name(src->dtype), dtype_name(values->dtype));
  if (positions != nullptr && positions->dtype != EP_DTYPE_i64)
    return Refusal::because("positions of %s", dtype_name(positions->dtype));
  for (const ep_operand_desc* output : {values, positions}) {
    if (output != nullptr && output->rank != src->rank)
      return Refusal::because("ranks %d and %d", src->rank, output->rank);
  }
  if (is_scalar(*src) || axis < 0 || axis >= src->rank) return Refusal::because("axis %d of rank %d", axis, src->rank);
  if (src->dims[axis] != EP_ANY && static_cast<uint64_t>(src->dims[axis]) > most_places)
    return Refusal::because("%lld elements along the axis", static_cast<long long>(src->dims[axis]));
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  info.greatest_dim = most_places;
  return {};
}

Refusal make_sort(ep_device& device, const ep_primitive_desc& desc, int32_t axis, bool descending, ep_primitive** out) {
  Sorter sorter;
  if (Refusal refusal = Sorter::make(device, operand(desc, EP_ROLE_SRC)->dtype, &sorter)) return refusal;
  *out = make_primitive<SortPrimitive>(device, desc, axis, descending, sorter);
  return {};
}

}  // namespace

Refusal Sort::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  return why_not_sorted(desc, desc.attributes.sort.axis, info);
}

Refusal Sort::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  return make_sort(device, desc, desc.attributes.sort.axis, desc.attributes.sort.descending != 0, out);
}

Refusal TopK::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  return why_not_sorted(desc, desc.attributes.top_k.axis, info);
}

Refusal TopK::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  return make_sort(device, desc, desc.attributes.top_k.axis, desc.attributes.top_k.largest != 0, out);
}

}  // namespace tenon::provider::cuda
