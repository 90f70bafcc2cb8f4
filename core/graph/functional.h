// Functional: the tensors of a recording as values. A recorded tensor is a base seen through a chain of views. Writing
// it makes a new value of the base, in which the view is overwritten; its other views are made anew when they are used
// next. Internal to core/graph and core/lazy.
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
  Dims strides = {};        // of its memory in an eager run at the hints; a write keeps them
  bool row_major = false;   // whatever the open sizes are
  uint64_t generation = 0;  // how often it was written
  // Whether it shares memory with another base, or one of its views with it, was decided on the layout of the hints.
  bool layout_decided = false;
  bool outside = false;  // it is the memory of a tensor from outside, which may not be written
  uint64_t frame = 0;    // whose value `value` is (Recorder::Frame)
  std::string_view written_by = {};
};

// A view, as its record says.
struct ViewStep {
  const OpInfo* op = nullptr;
  std::vector<uint64_t> attributes;
  std::vector<Patch> patches;
};

class Recorder;

struct RecordedTensor final : RecordedValue {
  RecordedTensor(std::shared_ptr<const Recording> recording, Recorder* by)
      : RecordedValue(std::move(recording)), recorder(by) {}

  void read_sizes(TensorImpl& tensor, SizeRead what, int64_t axis) override;
  SymDims sizes(const TensorImpl& tensor) const override;
  void note_layout(RecordedValue& made) override;
  std::unique_ptr<RecordedValue> alias() const override { return std::make_unique<RecordedTensor>(*this); }
  uint64_t version() const override { return base->generation; }
  std::string_view written_by() const override { return base->written_by; }

  Recorder* recorder;  // valid until the recording has finished
  std::shared_ptr<Base> base;
  std::vector<ViewStep> chain;  // from the base to this tensor
  ValueId value = 0;            // this tensor as it was at `generation`
  uint64_t generation = 0;
  uint64_t frame = 0;      // whose value `value` is
  bool row_major = false;  // whatever the open sizes are
};

// The value that `tensor`, which is recorded and has no data, stands for.
inline RecordedTensor& recorded(const Tensor& tensor) { return static_cast<RecordedTensor&>(*tensor.impl()->recorded); }

}  // namespace tenon::graph
