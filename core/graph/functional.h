// Functional: the tensors of a recording as values. A recorded tensor is a base seen through a chain of views. Writing
// it makes a new value of the base, in which the view is overwritten; its other views are made anew when they are used
// next. Internal to core/graph and core/compile.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>
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

// The views that lead from a base to a tensor. Copies share their steps, so a view of a view of many takes no more
// room.
class ViewChain {
 public:
  ViewChain with(ViewStep step) const { return ViewChain(std::make_shared<Link>(std::move(step), last_)); }

  // From the base on.
  std::vector<const ViewStep*> steps() const {
    std::vector<const ViewStep*> all;
    for (const Link* link = last_.get(); link != nullptr; link = link->before.get()) all.push_back(&link->step);
    std::reverse(all.begin(), all.end());
    return all;
  }

  ViewChain() = default;

 private:
  struct Link {
    Link(ViewStep view, std::shared_ptr<Link> of) : step(std::move(view)), before(std::move(of)) {}
    // Not one destructor inside of the next: chains may be long.
    ~Link() {
      for (auto next = std::move(before); next.use_count() == 1;) next = std::exchange(next->before, nullptr);
    }
    ViewStep step;
    std::shared_ptr<Link> before;
  };
  explicit ViewChain(std::shared_ptr<Link> last) : last_(std::move(last)) {}

  std::shared_ptr<Link> last_;
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
  ViewChain chain;    // from the base to this tensor
  ValueId value = 0;  // this tensor as it was at `generation`
  uint64_t generation = 0;
  uint64_t frame = 0;      // whose value `value` is
  bool row_major = false;  // whatever the open sizes are
};

// The value that `tensor`, which is recorded and has no data, stands for.
inline RecordedTensor& recorded(const Tensor& tensor) { return static_cast<RecordedTensor&>(*tensor.impl()->recorded); }

}  // namespace tenon::graph
