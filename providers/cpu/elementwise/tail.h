// Tail: the last epilogues of a matmul or convolution, computed over the finished result, in place, by the rows' own
// kernels: all of a small product's, and of oneDNN's those it does not have or loses NaN in (onednn/epilogue.cpp).
// Where the result is small it is still in a cache.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/elementwise/kernel.h"
#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// Why the epilogues of `desc` from number `first` on cannot be run so; pure.
Refusal why_no_tail(const ep_device& device, const ep_primitive_desc& desc, uint32_t first);

class Tail {
 public:
  Tail() = default;
  // Of a descriptor that why_no_tail does not refuse.
  Tail(const ep_device& device, const ep_primitive_desc& desc, uint32_t first);

  bool empty() const { return steps_.empty(); }
  // Over the result of `launch`, on at most `width` threads.
  void run(const ep_launch& launch, int32_t width) const;

 private:
  struct Step {
    MapKernel kernel;
    int32_t arity;
    int32_t scalar;  // launch scalar: the operand of arity 2, the parameters a and b of arity 1
  };

  // Over elements [begin, end), counted as they lie.
  void run_part(const ep_launch& launch, int64_t begin, int64_t end) const;

  std::vector<Step> steps_;
  int64_t elements_ = 0;
  int64_t picoseconds_ = 0;  // rough cost of all steps per element
};

}  // namespace tenon::provider::cpu
