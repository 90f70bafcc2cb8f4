// Captures: the tensors from outside that a recorded function uses, as values of the recording. Tensors that share a
// storage become views of one value, their root, so that a write through one of them is visible through the others.
// Internal.
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

namespace tenon::compilation {

enum class RootOf : uint8_t {
  input,    // an argument of the call
  capture,  // a tensor that existed before the call
  made,     // a tensor that the function made from host data: a constant
  random,   // random numbers, drawn by each run
};

// A recorded op that makes random numbers, without its position in the sequence of random numbers.
struct Draw {
  const OpInfo* op = nullptr;
  std::vector<uint64_t> attributes;
  DeviceState* device = nullptr;
  uint64_t offset = 0;  // blocks of random numbers that the call draws before it

  // The random numbers for a call whose random numbers begin at `begin`.
  Tensor numbers(RandomRange begin) const;
};

struct Root {
  RootOf of = RootOf::capture;
  size_t input = 0;      // index of the argument
  bool whole = false;    // the whole storage of the argument as one axis
  bool part = false;     // this rank's part of a global argument; its sizes are numbers
  Tensor tensor = {};    // the tensor behind the value while the function is recorded
  Tensor recorded = {};  // the value
  uint64_t writes = 0;   // how many writes the function made
  Draw draw = {};        // for random numbers

  bool written() const { return writes != 0; }
  // True if its tensor exists before and after the call, so that writes to it are visible.
  bool outlives() const { return of == RootOf::input || of == RootOf::capture; }
};

// A captured tensor that wants a gradient: a leaf, or a result of ops outside of the function.
struct WantingCapture {
  Tensor tensor;
  autograd::Edge edge;
};

class Captures final : public autograd::Boundary {
 public:
  // `gradients`: ops are recorded for gradients, so captures that want one matter.
  Captures(graph::Recorder& recorder, bool gradients) : recorder_(recorder), gradients_(gradients) {}

  // The arguments of a call as values. For a global argument it is this rank's part, or undefined if the rank holds
  // none.
  TensorList add_inputs(const TensorList& inputs);
  // Makes `tensor` a constant with its present elements. The function may write it afterwards.
  void add_made(const Tensor& tensor, bool filled);
  // The result of `call`, which makes random numbers. In a run they begin `offset` blocks after the run's first one.
  Tensor add_random(const OpCall& call, uint64_t offset);
  // The value of the recording for `tensor`, which has data. An unknown tensor becomes a capture.
  Tensor stand_in(const Tensor& tensor);
  // Notes a tensor from outside that ops use, in case it wants a gradient.
  void note_handle(const Tensor& tensor);
  // Like stand_in, but ignores gradients.
  Tensor find(const Tensor& tensor);
  // True if a root has the storage of `tensor`.
  bool knows(const Tensor& tensor) const { return by_storage_.count(tensor.impl()->storage.at_hand()) != 0; }

  // Counts the writes of `op`, which was just recorded, also in the storages' versions, which gradients check.
  void note_writes(const OpInfo& op);
  // Errors: invalid_argument if a tensor that was written shares memory with a tensor that does not see the write.
  void check_overlaps() const;

  // In the order of discovery. The roots that are inputs or captures are the inputs of the graph, in this order.
  const std::vector<Root>& roots() const { return roots_; }
  const std::vector<WantingCapture>& wanting() const { return wanting_; }
  bool outside(const autograd::Node& node) const override;
  // The captured floating-point tensors, each handle once, global ones included.
  const TensorList& handles() const { return handles_; }
  // Captured tensors that are views of an argument, with the argument's index.
  const std::vector<std::pair<size_t, Tensor>>& views_of_inputs() const { return views_of_inputs_; }

 private:
  using Geometry = std::vector<int64_t>;

  void add_root(Root root);
  void note_wanting(const Tensor& tensor);

  graph::Recorder& recorder_;
  bool gradients_;
  std::vector<Root> roots_;
  std::multimap<const void*, size_t> by_storage_;
  std::map<Geometry, Tensor> known_;     // the value of each known tensor
  std::vector<WantingCapture> wanting_;  // each edge once
  TensorList handles_;
  std::set<const TensorImpl*> met_;
  std::vector<std::pair<size_t, Tensor>> views_of_inputs_;
};

// The storage of `tensor` as a tensor of one axis; undefined if its size is not a multiple of the element size.
Tensor whole_storage(const Tensor& tensor);
// True if both tensors contain a common byte.
bool overlap(const Tensor& a, const Tensor& b);
// dtype, offset, dims and strides.
std::vector<int64_t> geometry_of(const Tensor& tensor);

}  // namespace tenon::compilation
