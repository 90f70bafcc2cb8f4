// Pattern: the common form of eager calls that one recording serves. Sizes of a call become symbols. Each input becomes
// a row-major buffer followed by views, whatever its strides are. Internal to core/codegen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/device/device_state.h"
#include "core/ops/op_call.h"
#include "primitives/shape/shape.h"

namespace tenon::codegen {

constexpr uint32_t kNoSize = UINT32_MAX;

// A length in a call: a size of the pattern, by index, or, with kNoSize, a number that all calls of the pattern share.
struct Length {
  int64_t number = 0;
  uint32_t size = kNoSize;
};

// A tensor that the recording reads: row-major elements from the input's first element on, and the views that make the
// input from them, in the order of the members.
struct Source {
  DType dtype = DType::none;                        // none: the argument is absent
  int32_t scalar = -1;                              // the launch scalar that replaces the input; -1: none
  std::vector<Length> dims;                         // dims of the buffer
  std::vector<std::pair<int32_t, Length>> slices;   // dims that are sliced to their first elements, and how many
  bool selects = false;                             // takes the first element of the last dim
  std::vector<int64_t> order;                       // permutation of the dims; empty: none
  std::vector<int64_t> ones;                        // dims of length 1 that are inserted
  std::vector<std::pair<int32_t, Length>> repeats;  // inserted dims that are then expanded, and their lengths

  Dims numbers() const;  // dims of the buffer as numbers
};

struct Pattern {
  std::string key;             // equal patterns have equal keys
  std::vector<int64_t> sizes;  // sizes of this call, all above 1
  std::vector<Source> sources;
  bool baked = false;          // scalar values are part of the key
  bool folded = false;         // an element-wise op or a cast, whose axes are folded
  Dims folded_dims;            // dims of its result
  bool written_apart = false;  // the output is not dense: the result is computed into other memory and then copied
};

// Errors: unsupported if no recording can serve `call`, with the reason.
Result<Pattern> pattern_of(const OpCall& call, DeviceState* device, const std::vector<TensorMeta>& outputs);

}  // namespace tenon::codegen
