// Tail: the last epilogues of a matmul or convolution, computed in place on the finished result by element-wise
// kernels. A small product computes all its epilogues this way. A oneDNN primitive uses it for epilogues that oneDNN
// lacks or that lose NaN in oneDNN (onednn/epilogue.cpp).
#pragma once

#include <cstdint>
#include <vector>

#include "providers/cpu/elementwise/kernel.h"
#include "providers/cpu/primitive.h"

namespace tenon::provider::cpu {

// True if `other` has the dims of the result of `desc` and is laid out like it. Pure.
bool lies_as_dst(const ep_primitive_desc& desc, const ep_operand_desc& other);

// The reason why a Tail cannot compute the epilogues of `desc` from number `first` on. Pure.
Refusal why_no_tail(const ep_device& device, const ep_primitive_desc& desc, uint32_t first);

class Tail {
 public:
  Tail() = default;
  // `desc` must pass why_no_tail.
  Tail(const ep_device& device, const ep_primitive_desc& desc, uint32_t first);

  bool empty() const { return steps_.empty(); }
  // Computes the epilogues over the result of `launch`, on at most `width` threads.
  void run(const ep_launch& launch, int32_t width) const;

 private:
  struct Step {
    MapKernel kernel;
    int32_t arity;
    int32_t scalar;  // first launch scalar: the second operand (arity 2), or the parameters a and b (arity 1)
    int32_t other;   // operand number of the second operand, laid out like the result; -1: it is a scalar
  };

  // Processes elements [begin, end) in memory order.
  void run_part(const ep_launch& launch, int64_t begin, int64_t end) const;

  std::vector<Step> steps_;
  int64_t elements_ = 0;
  int64_t picoseconds_ = 0;  // estimated cost of all steps per element
};

}  // namespace tenon::provider::cpu
