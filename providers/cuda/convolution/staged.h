// Staged: an operand whose order or type differs from the library's. It is copied to the workspace before the library's
// call, or from it after the call.
#pragma once

#include "providers/cuda/convolution/convolution_tail.h"
#include "providers/cuda/movement/mover.h"

namespace tenon::provider::cuda {

class Staged {
 public:
  // Copies between operand `operand`, with the layout `given`, and `dense` at `offset` in the workspace. Operand 0 is a
  // result and keeps its type.
  static Refusal make(ep_device& device, int32_t operand, const ep_operand_desc& given, const ep_operand_desc& dense,
                      uint64_t offset, Staged* out);

  int32_t operand() const { return operand_; }
  ep_buffer in(const ep_launch& launch) const { return behind(launch.workspace, offset_); }
  // Copies an input to the workspace, or the result out of it.
  ep_status run(ep_stream* stream, const ep_launch& launch, ep_error** error) const;

 private:
  int32_t operand_ = 0;
  ep_operand_desc given_{}, dense_{};
  uint64_t offset_ = 0;
  bool casts_ = false;
  Mover mover_;
  Map cast_;
};

}  // namespace tenon::provider::cuda
