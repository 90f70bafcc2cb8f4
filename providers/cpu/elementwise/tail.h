// Tail: the last epilogues of a matmul or convolution, computed in place over the finished result by the element-wise
// kernels. A small product computes all its epilogues so; a oneDNN primitive computes those that oneDNN lacks or that
// lose NaN there (onednn/epilogue.cpp). A small result is still in a cache then.
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/elementwise/kernel.h"
#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// Why a Tail cannot compute the epilogues of `desc` from number `first` on. Pure.
Refusal why_no_tail(const ep_device& device, const ep_primitive_desc& desc, uint32_t first);

class Tail {
 public:
  Tail() = default;
  // `desc` is one that why_no_tail does not refuse.
  Tail(const ep_device& device, const ep_primitive_desc& desc, uint32_t first);

  bool empty() const { return steps_.empty(); }
  // Computes the epilogues over the result of `launch`, on at most `width` threads.
  void run(const ep_launch& launch, int32_t width) const;

 private:
  struct Step {
    MapKernel kernel;
    int32_t arity;
    int32_t scalar;  // first launch scalar: the second operand (arity 2), or the parameters a and b (arity 1)
  };

  // Computes elements [begin, end) in the order in which they lie in memory.
  void run_part(const ep_launch& launch, int64_t begin, int64_t end) const;

  std::vector<Step> steps_;
  int64_t elements_ = 0;
  int64_t picoseconds_ = 0;  // rough cost of all steps per element
};

}  // namespace tenon::provider::cpu
