// scan along one axis.
#include <fmt/core.h>

#include <algorithm>
#include <string>

#include "providers/cuda/elementwise/scalar_value.h"
#include "providers/cuda/reduction/reduction.h"

namespace tenon::provider::cuda {
namespace {

constexpr int64_t short_row = 8;
constexpr int64_t warp_row = 1024;
constexpr int64_t many_rows = 8192;  // enough threads with one row per thread

class ScanPrimitive final : public ep_primitive {
 public:
  // `functions` has one kernel per team.
  ScanPrimitive(const ep_primitive_desc& desc, const CUfunction* functions) : desc_(desc) {
    std::copy_n(functions, 3, functions_);
  }

  ep_status launch(ep_stream* stream, const ep_launch& launch, ep_error** error) override {
    const OperandShape dst = shape_of(desc_.operands[0], launch.shapes, 0);
    const OperandShape src = shape_of(desc_.operands[1], launch.shapes, 1);
    const ep_scan_attributes& attributes = desc_.attributes.scan;
    ScanArguments scan{};
    scan.src = address_of(launch.operands[1]);
    scan.dst = address_of(launch.operands[0]);
    scan.dtype = desc_.operands[0].dtype;
    scan.op = attributes.op;
    scan.exclusive = attributes.exclusive;
    scan.reverse = attributes.reverse;
    scan.length = src.dims[attributes.axis];
    scan.src_stride = src.strides[attributes.axis];
    scan.dst_stride = dst.strides[attributes.axis];
    scan.rows = axes_of(src, dst, 1U << attributes.axis, false);
    const bool contiguous = scan.src_stride == 1 && scan.dst_stride == 1;
    const int64_t size = dtype_size(scan.dtype);
    scan.vector = contiguous && scan.reverse == 0 && rows_are_aligned(scan.src, size, scan.rows, scan.rows.src) &&
                  rows_are_aligned(scan.dst, size, scan.rows, scan.rows.dst);
    const Team team = plan_scan(scan.rows.count, scan.length, contiguous);
    return launch_kernel(stream, functions_[static_cast<size_t>(team)], geometry_for(scan.rows.count, team), &scan,
                         error);
  }

 private:
  ep_primitive_desc desc_;
  CUfunction functions_[3] = {};
};

}  // namespace

Team plan_scan(int64_t rows, int64_t length, bool contiguous) {
  // If consecutive rows are neighbours in memory, neighbouring threads should scan neighbouring rows.
  if (length <= short_row || (!contiguous && rows >= many_rows)) return Team::SOLO;
  return length <= warp_row ? Team::WARP : Team::BLOCK;
}

Refusal Scan::why_not(const ep_device&, const ep_primitive_desc& desc, ep_support_info& info) {
  if (desc.operand_count != 2 || desc.operands[0].role != EP_ROLE_DST || desc.operands[1].role != EP_ROLE_SRC)
    return Refusal::because("its operands are not DST and SRC alone");
  const ep_scan_attributes& attributes = desc.attributes.scan;
  const int32_t dtype = desc.operands[0].dtype;
  if (attributes.op < EP_SCAN_SUM || attributes.op > EP_SCAN_LOG_SUM_EXP)
    return Refusal::because("op %d", attributes.op);
  if (desc.operands[1].dtype != dtype)
    return Refusal::because("a source of %s, a result of %s", dtype_name(desc.operands[1].dtype), dtype_name(dtype));
  if (class_of(dtype) == 0) return Refusal::because("no kernel computes with %s", dtype_name(dtype));
  const bool takes_bool = attributes.op == EP_SCAN_MAX || attributes.op == EP_SCAN_MIN;
  if ((dtype == EP_DTYPE_bool && !takes_bool) || (attributes.op == EP_SCAN_LOG_SUM_EXP && !is_floating(dtype)))
    return Refusal::because("op %d is not defined on %s", attributes.op, dtype_name(dtype));
  // The product of one part may overflow where the product of the row is 0, and 0 times infinity is NaN.
  if (attributes.op == EP_SCAN_PROD && is_floating(dtype)) return Refusal::because("parts of a product may overflow");
  if (is_scalar(desc.operands[1]) || desc.operands[0].rank != desc.operands[1].rank)
    return Refusal::because("ranks differ");
  if (attributes.axis < 0 || attributes.axis >= desc.operands[0].rank)
    return Refusal::because("axis %d of rank %d", attributes.axis, desc.operands[0].rank);
  info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  return {};
}

Refusal Scan::make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info&) {
  const int32_t dtype_class = class_of(desc.operands[0].dtype);
  const bool sum = dtype_class == EP_DTYPE_f32 && desc.attributes.scan.op == EP_SCAN_SUM;
  CUfunction functions[3] = {};
  for (const Team team : {Team::SOLO, Team::WARP, Team::BLOCK}) {
    const std::string name = fmt::format("scan_{}{}_{}", sum ? "sum_" : "", class_name(dtype_class), team_name(team));
    CUfunction& function = functions[static_cast<size_t>(team)];
    if (Refusal refusal = find_kernel(device, Family::SCAN, name.c_str(), &function)) return refusal;
  }
  *out = make_primitive<ScanPrimitive>(device, desc, functions);
  return {};
}

}  // namespace tenon::provider::cuda
