// Functional: the tensors of a recording as values. A recorded tensor is a base seen through a chain of views. A write
// makes a new value of the base, in which the viewed part is overwritten; the base's other views are recomputed at
// their next use. Internal to core/graph and core/compile.
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

// The common state of tensors that share memory.
struct Base {
  ValueId value = 0;        // present value of the base
  Dims strides = {};        // strides of its memory in an eager run at the hints; writes do not change them
  bool row_major = false;   // for all values of the open sizes
  uint64_t generation = 0;  // number of writes
  // True if the layout at the hints decided whether the base, or one of its views, shares memory with another base.
  bool layout_decided = false;
  bool outside = false;  // the memory of a tensor from outside, which must not be written
  uint64_t frame = 0;    // frame of `value` (Recorder::Frame)
  std::string_view written_by = {};
};

// One view, as its record.
struct ViewStep {
  const OpInfo* op = nullptr;
  std::vector<uint64_t> attributes;
  std::vector<Patch> patches;
};

// The views that lead from a base to a tensor. Copies share their steps, so a long chain of views takes memory once.
class ViewChain {
 public:
  ViewChain with(ViewStep step) const { return ViewChain(std::make_shared<Link>(std::move(step), last_)); }

  // The steps, starting at the base.
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
    // Frees the links in a loop, because nested destructors of a long chain would overflow the stack.
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
  std::unique_ptr<StandIn> alias() const override { return std::make_unique<RecordedTensor>(*this); }
  uint64_t version() const override { return base->generation; }
  std::string_view written_by() const override { return base->written_by; }

  Recorder* recorder;  // valid until the recording is finished
  std::shared_ptr<Base> base;
  ViewChain chain;    // from the base to this tensor
  ValueId value = 0;  // value of this tensor at `generation`
  uint64_t generation = 0;
  uint64_t frame = 0;      // frame of `value`
  bool row_major = false;  // for all values of the open sizes
};

// The recorded state of `tensor`, which is recorded and has no data.
inline RecordedTensor& recorded(const Tensor& tensor) { return static_cast<RecordedTensor&>(*tensor.impl()->stand_in); }

}  // namespace tenon::graph
