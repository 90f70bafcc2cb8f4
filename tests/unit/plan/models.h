// The values of whole models as an executor would plan them: sizes, lifetimes, steps that run in place.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/plan/memory_plan.h"

namespace tenon::testing {

// A program written down step by step. A value lives from the step that makes it to the last step that reads it.
class ProgramOfValues {
 public:
  // A step that reads `inputs` and makes a value of `elements` f32.
  uint32_t make(int64_t elements, std::initializer_list<uint32_t> inputs);
  // A step that reads `inputs` and writes its result over the first of them.
  uint32_t in_place(std::initializer_list<uint32_t> inputs);
  // Workspace of the previous step.
  void workspace(int64_t bytes);

  const std::vector<plan::Value>& values() const { return values_; }

 private:
  void read(std::initializer_list<uint32_t> inputs);

  std::vector<plan::Value> values_;
  uint32_t step_ = 0;
  uint32_t groups_ = 0;
};

struct ModelOfValues {
  std::string name;
  std::vector<plan::Value> values;
};

// ResNet-50, MobileNet-v2, U-Net, BERT-base, ViT-B/16 and DenseNet-121, by their shapes.
std::vector<ModelOfValues> models_of_values();

}  // namespace tenon::testing
