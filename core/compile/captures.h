// Captures: the tensors from outside that a recorded function uses, as values of the recording. What shares a storage
// is one value, its root, seen through views, so that a write through one tensor is seen through the others. Internal.
#pragma once

#include <cstdint>
#include <map>
#include <set>
#include <span>
#include <utility>
#include <vector>

#include "core/autograd/engine.h"
#include "core/graph/recorder.h"
#include "core/tensor/generator.h"
#include "core/tensor/tensor.h"

namespace tenon::lazy {

enum class RootOf : uint8_t {
  input,    // an argument of the call
  capture,  // a tensor that was there before the call
  made,     // a tensor that the function made from data of the host: a constant
  random,   // random numbers, which each run draws
};

// The record of an op that makes random numbers, but for where they begin.
struct Draw {
  const OpInfo* op = nullptr;
  std::vector<uint64_t> attributes;
  DeviceState* device = nullptr;
  uint64_t offset = 0;  // in blocks, from where the numbers of the call begin

  // The numbers of a call, whose numbers begin at `begin`.
  Tensor numbers(RandomRange begin) const;
};

struct Root {
  RootOf of = RootOf::capture;
  size_t input = 0;      // the number of the argument
  bool whole = false;    // the storage of the argument as one axis
  bool part = false;     // of this rank, of a global argument: its sizes are numbers
  Tensor tensor = {};    // what the value holds, when the function is recorded
  Tensor recorded = {};  // the value
  uint64_t writes = 0;   // how many the function made
  Draw draw = {};        // of random numbers

  bool written() const { return writes != 0; }
  // True if its tensor is there before and after the call, so that writes are seen.
  bool outlives() const { return of == RootOf::input || of == RootOf::capture; }
};

// A captured tensor that wants a gradient: a leaf, or what ops outside of the function have made.
struct WantingCapture {
  Tensor tensor;
  autograd::Edge edge;
};

class Captures final : public autograd::Boundary {
 public:
  // `gradients`: ops are remembered, so captures that want one matter.
  Captures(graph::Recorder& recorder, bool gradients) : recorder_(recorder), gradients_(gradients) {}

  // The arguments of a call as values; of a global one the part of this rank, undefined where it has none.
  TensorList add_inputs(const TensorList& inputs);
  // `tensor` becomes a constant with the elements that it has now; it may be written from then on.
  void add_made(const Tensor& tensor, bool filled);
  // The result of `call`, which makes random numbers; those of a run begin `offset` blocks after its first ones.
  Tensor add_random(const OpCall& call, uint64_t offset);
  // The value that `tensor`, which has data, stands for. A tensor that was not met before is a capture from now on.
  Tensor stand_in(const Tensor& tensor);
  // Notes a tensor from outside that ops use: whether it wants a gradient matters.
  void note_handle(const Tensor& tensor);
  // The same without a look at gradients.
  Tensor find(const Tensor& tensor);
  // True if the storage of `tensor` is a root's.
  bool knows(const Tensor& tensor) const { return by_storage_.count(tensor.impl()->storage.at_hand()) != 0; }

  // Counts what `op`, which was just recorded, has written, in the storages too: gradients look there.
  void note_writes(const OpInfo& op);
  // Errors: invalid_argument: a tensor that was written shares memory with one that does not see the write.
  void check_overlaps() const;

  // In the order in which they were met; those of inputs and captures are the inputs of the graph, in this order.
  const std::vector<Root>& roots() const { return roots_; }
  const std::vector<WantingCapture>& wanting() const { return wanting_; }
  bool outside(const autograd::Node& node) const override;
  // The captured tensors of floats, each handle once; global ones among them.
  const TensorList& handles() const { return handles_; }
  // Captured tensors that are views of an argument, with its number.
  const std::vector<std::pair<size_t, Tensor>>& views_of_inputs() const { return views_of_inputs_; }

 private:
  using Geometry = std::vector<int64_t>;

  void add_root(Root root);
  void note_wanting(const Tensor& tensor);

  graph::Recorder& recorder_;
  bool gradients_;
  std::vector<Root> roots_;
  std::multimap<const void*, size_t> by_storage_;
  std::map<Geometry, Tensor> known_;     // the value of each tensor that was met
  std::vector<WantingCapture> wanting_;  // each edge once
  TensorList handles_;
  std::set<const TensorImpl*> met_;
  std::vector<std::pair<size_t, Tensor>> views_of_inputs_;
};

// The storage of `tensor` as a tensor of one axis; undefined if its elements do not fill it.
Tensor whole_storage(const Tensor& tensor);
// Whether both reach a common byte.
bool overlap(const Tensor& a, const Tensor& b);
// dtype, offset, dims and strides.
std::vector<int64_t> geometry_of(const Tensor& tensor);

}  // namespace tenon::lazy
