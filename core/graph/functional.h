// Functional: the tensors of a recording as values. A recorded tensor is a base seen through a chain of views. Writing
// it makes a new value of the base, in which the view is overwritten; its other views are made anew when they are used
// next. Internal to core/graph.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "core/graph/graph.h"
#include "core/tensor/recording.h"

namespace tenon::graph {

// What tensors that share memory have in common.
struct Base {
  ValueId value = 0;        // as the base is now
  uint64_t generation = 0;  // how often it was written
  std::string_view written_by = {};
};

// A view, as its record says.
struct ViewStep {
  const OpInfo* op = nullptr;
  std::vector<uint64_t> attributes;
};

struct RecordedTensor final : RecordedValue {
  using RecordedValue::RecordedValue;
  std::unique_ptr<RecordedValue> alias() const override { return std::make_unique<RecordedTensor>(*this); }
  uint64_t version() const override { return base->generation; }
  std::string_view written_by() const override { return base->written_by; }

  std::shared_ptr<Base> base;
  std::vector<ViewStep> chain;  // from the base to this tensor
  ValueId value = 0;            // this tensor as it was at `generation`
  uint64_t generation = 0;
};

}  // namespace tenon::graph
