// Pattern: what calls have in common that one recording serves. The sizes of a call become symbols, and each of its
// inputs a row-major buffer with views behind it, whatever its strides are. Internal to core/codegen.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/device/device_state.h"
#include "core/ops/op_call.h"
#include "primitives/shape/shape.h"

namespace tenon::codegen {

constexpr uint32_t kNoSize = UINT32_MAX;

// A length of a call, and which size of its pattern it is; kNoSize: all calls of the pattern have this number.
struct Length {
  int64_t number = 0;
  uint32_t size = kNoSize;
};

// A tensor that the recording reads: elements that lie row-major from the first element of the input on, and the views
// that make the input of them, in this order.
struct Source {
  DType dtype = DType::none;                        // none: the argument is absent
  int32_t scalar = -1;                              // the launch scalar that it is in place of an input; -1: none
  std::vector<Length> dims;                         // of the buffer
  std::vector<std::pair<int32_t, Length>> slices;   // dims of which the first elements are read: so many
  bool selects = false;                             // of the last dim the first element
  std::vector<int64_t> order;                       // permute; empty: none
  std::vector<int64_t> ones;                        // dims of length 1 that are put in
  std::vector<std::pair<int32_t, Length>> repeats;  // those of them that repeat it

  Dims numbers() const;  // of the buffer
};

struct Pattern {
  std::string key;             // equal patterns have equal keys
  std::vector<int64_t> sizes;  // of this call, all above 1
  std::vector<Source> sources;
  bool baked = false;          // scalars are a part of the key
  bool folded = false;         // an element-wise op or a cast, whose axes are folded
  Dims folded_dims;            // of its result
  bool written_apart = false;  // the result does not lie dense where it goes: it is made elsewhere, and copied
};

// Errors: unsupported, with the reason why no recording serves `call`.
Result<Pattern> pattern_of(const OpCall& call, DeviceState* device, const std::vector<TensorMeta>& outputs);

}  // namespace tenon::codegen
