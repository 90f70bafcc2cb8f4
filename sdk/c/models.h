// Models and values as the files of this folder share them.
#pragma once

#include <vector>

#include "sdk/c/border.h"
#include "sdk/onnx/onnx.h"

struct tenon_value {
  tenon::onnx::Value value;
};

// A model, and what the descriptions of its inputs and outputs point to.
struct tenon_model {
  explicit tenon_model(tenon::onnx::Model loaded);

  // A description of one input or output, with the memory of its texts and dims.
  struct Described {
    explicit Described(const tenon::onnx::ValueInfo& info);
    const tenon::onnx::ValueInfo* info;
    std::vector<tenon_dim> dims;
    std::string text;
  };

  tenon::onnx::Model model;
  std::vector<Described> described[3];  // by TENON_INPUTS, TENON_OUTPUTS, TENON_DEFAULTS
};

namespace tenon::c {

// A new handle to `value`.
tenon_value* value_handle(onnx::Value value);

}  // namespace tenon::c
