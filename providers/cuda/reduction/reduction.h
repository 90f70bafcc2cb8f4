// The kinds reduce, arg_reduce, scan and softmax.
#pragma once

#include "providers/cuda/primitive.h"
#include "providers/cuda/reduction/axes.h"

namespace tenon::provider::cuda {

// How a reduction of `kept` values, each over `reduced` elements, is cut. Only the shape and the device decide, so that
// a repeated reduction gives the same bits.
struct ReducePlan {
  Team team = Team::BLOCK;
  int64_t parts = 1;
  int64_t part_length = 0;
};
ReducePlan plan_reduce(const AxisSet& kept, const AxisSet& reduced, int64_t processors);

// Enough blocks for `rows` rows, each computed by a team.
Geometry geometry_for(int64_t rows, Team team);

// A reduction of `src` over a set of axes, with its cut.
struct ReduceCut {
  AxisSet kept;
  AxisSet reduced;
  ReducePlan plan;
};
ReduceCut cut_reduction(const OperandShape& src, const OperandShape& dst, uint32_t axes, int64_t processors);
// The arguments of the first launch; the caller sets addresses, dtypes and `op`.
ReduceArguments first_step(const ReduceCut& cut);
// The workspace bytes for unfinished values of `size` bytes each.
uint64_t parts_bytes(const ReduceCut& cut, int64_t size);
// Launches `first` and, if it has several parts, their combination. `functions` has a kernel for each Team.
ep_status run_steps(ep_stream* stream, const CUfunction* functions, Team team, ReduceArguments first,
                    CUdeviceptr workspace, ep_error** error);

// The kernels of softmax. SOLO, WARP and BLOCK take any row; the others hold a contiguous row of f32 or a narrower
// float in registers.
enum class SoftmaxKernel : size_t { SOLO, WARP, BLOCK, WARP_HELD, WARP_HELD_LONG, BLOCK_HELD, BLOCK_HELD_LONG };
inline constexpr size_t softmax_kernels = static_cast<size_t>(SoftmaxKernel::BLOCK_HELD_LONG) + 1;
inline constexpr size_t softmax_kernels_f64 =
    static_cast<size_t>(SoftmaxKernel::BLOCK) + 1;  // f64 has only the first three

// The kernel for rows of `length`.
struct SoftmaxPlan {
  Team team = Team::BLOCK;
  SoftmaxKernel kernel = SoftmaxKernel::BLOCK;
};
SoftmaxPlan plan_softmax(int64_t length, bool contiguous, bool is_f64);

struct Reduce {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

struct ArgReduce {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

// The team for a scan of `rows` rows of `length`.
Team plan_scan(int64_t rows, int64_t length, bool contiguous);

struct Scan {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

struct Softmax {
  static Refusal why_not(const ep_device& device, const ep_primitive_desc& desc, ep_support_info& info);
  static Refusal make(ep_device& device, const ep_primitive_desc& desc, ep_primitive** out, ep_primitive_info& info);
};

}  // namespace tenon::provider::cuda
