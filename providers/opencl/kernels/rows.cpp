// Kinds along axes with one source: reduce, arg_reduce, softmax. One work-item computes a row alone, or a group shares
// it. If few values are reduced from many elements, reduce has parts, and a second launch combines their values. The
// shape alone decides this, so a repeated reduction gives the same bits.
#include <fmt/core.h>

#include <algorithm>

#include "providers/opencl/kernels/axes.h"
#include "providers/opencl/kernels/element.h"
#include "providers/opencl/kernels/kernels.h"
#include "sdk/provider/scalar_rows.h"

namespace tenon::provider::opencl {
namespace {

constexpr uint64_t enough_groups = 256;
constexpr uint64_t least_part = 4096;

uint64_t parts_of(const RowParameters& rows) {
  if (rows.rows >= enough_groups) return 1;
  return std::max<uint64_t>(1, std::min(rows.length / least_part, enough_groups / rows.rows));
}

// The bytes of a value between two launches: the program's EP_T.
uint64_t value_size(int32_t dtype) { return dtype_size(dtype) == 8 ? 8 : 4; }

class RowPrimitive final : public ep_primitive {
 public:
  RowPrimitive(const ep_primitive_desc& desc, const RowParameters& rows, bool items, std::shared_ptr<Kernel> first,
               std::shared_ptr<Kernel> second)
      : rows_(rows),
        items_(items),
        dst_dtype_(desc.operands[0].dtype),
        src_dtype_(desc.operands[1].dtype),
        first_(std::move(first)),
        second_(std::move(second)) {}

  uint64_t workspace(const ep_shape*) const override {
    return second_ == nullptr ? 0 : rows_.rows * rows_.parts * value_size(src_dtype_);
  }
  bool has_workspace() const override { return second_ != nullptr; }

  ep_status launch(ep_stream& stream, const ep_launch& launch, ep_error** error) const override {
    RowParameters rows = rows_;
    rows.dst = first_element(launch.operands[0], dst_dtype_);
    rows.src = first_element(launch.operands[1], src_dtype_);
    const cl_mem dst = buffer_of(launch.operands[0]);
    const cl_mem src = buffer_of(launch.operands[1]);
    CommandQueue& queue = *stream.queue;
    if (items_) return queue.launch({first_.get(), groups_for(rows.rows), group_size}, {dst, src}, rows, error);
    if (second_ == nullptr) return queue.launch({first_.get(), rows.rows, row_lanes}, {dst, src}, rows, error);
    const cl_mem partial = buffer_of(launch.workspace);
    rows.dst = launch.workspace.offset / value_size(src_dtype_);
    const Dispatch parts = {first_.get(), rows.rows * rows.parts, row_lanes};
    if (const ep_status status = queue.launch(parts, {partial, src}, rows, error); status != EP_STATUS_OK) {
      return status;
    }
    rows.dst = first_element(launch.operands[0], dst_dtype_);
    rows.src = launch.workspace.offset;
    return queue.launch({second_.get(), rows.rows, row_lanes}, {dst, partial}, rows, error);
  }

 private:
  RowParameters rows_;
  bool items_;
  int32_t dst_dtype_;
  int32_t src_dtype_;
  std::shared_ptr<Kernel> first_;
  std::shared_ptr<Kernel> second_;
};

Refusal make_rows(ep_device& device, const ep_primitive_desc& desc, const RowParameters& rows, const std::string& text,
                  const std::string& options, ep_primitive** out) {
  const bool items = prefers_items(rows);
  const std::string all = type_options(device.context->physical, desc.operands[1].dtype) + options;
  std::shared_ptr<Kernel> first;
  std::shared_ptr<Kernel> second;
  if (Refusal refusal = device.programs->get(text, all, text + (items ? "_item" : "_group"), &first)) return refusal;
  if (rows.parts > 1) {
    if (Refusal refusal = device.programs->get(text, all, text + "_parts", &second)) return refusal;
  }
  *out = make_primitive<RowPrimitive>(device, desc, rows, items, std::move(first), std::move(second));
  return {};
}

Refusal check_two(const ep_primitive_desc& desc, uint32_t walked) {
  if (desc.operand_count != 2) return Refusal::because("%u operands", desc.operand_count);
  return why_no_rows(desc, 1, walked);
}

uint32_t axis_mask(int32_t axis) { return axis < 0 || axis >= EP_MAX_RANK ? 0 : 1U << axis; }

}  // namespace

Refusal Reduce::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (Refusal refusal = check_two(desc, desc.attributes.reduce.axes)) return refusal;
  const int32_t dtype = desc.operands[1].dtype;
  const int32_t op = desc.attributes.reduce.op;
  const scalar::RowFacts facts = scalar::reduce_facts(op);
  if (!facts.known || !scalar::defined_on(facts.domain, dtype)) {
    return Refusal::because("reduction %d is not defined on %s", op, dtype_name(dtype));
  }
  if (desc.operands[0].dtype != dtype) {
    return Refusal::because("a result of %s, not %s", dtype_name(desc.operands[0].dtype), dtype_name(dtype));
  }
  return why_not_computed(device.context->physical, dtype);
}

Refusal Reduce::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  RowParameters rows = rows_of(desc.operands[0], desc.operands[1], desc.attributes.reduce.axes);
  rows.op = desc.attributes.reduce.op;
  if (!prefers_items(rows)) {
    rows.parts = parts_of(rows);
    rows.part_length = (rows.length + rows.parts - 1) / rows.parts;
  }
  const bool f32 = desc.operands[1].dtype == EP_DTYPE_f32;
  return make_rows(device, desc, rows, "reduce", f32 ? fmt::format(" -DOP={}", rows.op) : "", out);
}

Refusal ArgReduce::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  const int32_t op = desc.attributes.arg_reduce.op;
  if (op != EP_REDUCE_max && op != EP_REDUCE_min) return Refusal::because("op %d", op);
  if (Refusal refusal = check_two(desc, axis_mask(desc.attributes.arg_reduce.axis))) return refusal;
  if (desc.operands[0].dtype != EP_DTYPE_i64) {
    return Refusal::because("positions of %s", dtype_name(desc.operands[0].dtype));
  }
  return why_not_computed(device.context->physical, desc.operands[1].dtype);
}

Refusal ArgReduce::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const ep_arg_reduce_attributes& attributes = desc.attributes.arg_reduce;
  RowParameters rows = rows_of(desc.operands[0], desc.operands[1], axis_mask(attributes.axis));
  rows.op = attributes.op == EP_REDUCE_max ? 1 : 0;
  rows.flag = attributes.last;
  return make_rows(device, desc, rows, "arg_reduce", "", out);
}

Refusal Softmax::why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info&) {
  if (Refusal refusal = check_two(desc, axis_mask(desc.attributes.softmax.axis))) return refusal;
  const int32_t dtype = desc.operands[1].dtype;
  if (desc.operands[0].dtype != dtype) {
    return Refusal::because("a result of %s, not %s", dtype_name(desc.operands[0].dtype), dtype_name(dtype));
  }
  if (!is_floating(dtype)) return Refusal::because("softmax is not defined on %s", dtype_name(dtype));
  return why_not_computed(device.context->physical, dtype);
}

Refusal Softmax::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  RowParameters rows = rows_of(desc.operands[0], desc.operands[1], axis_mask(desc.attributes.softmax.axis));
  rows.flag = desc.attributes.softmax.log;
  return make_rows(device, desc, rows, "softmax", "", out);
}

}  // namespace tenon::provider::opencl
