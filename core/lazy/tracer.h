// Tracer: the interpreter under which a function is recorded. It gives the recorder values in place of the tensors from
// outside, and refuses what a recording cannot see. Internal.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "core/autograd/node.h"
#include "core/graph/recorder.h"
#include "core/lazy/captures.h"
#include "core/ops/op_call.h"
#include "core/tensor/host_watch.h"

namespace tenon::lazy {

class Tracer final : public Interpreter, public HostWatch {
 public:
  // `name`: what errors call the function. `frozen`: constants.
  Tracer(Device device, std::string name, const TensorList& frozen);
  // Takes back what the function did to the histories of tensors from outside.
  ~Tracer() override;
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  std::string name() const override { return recorder_.name(); }
  void apply(const OpCall& call) override;
  bool host_value_known(const Tensor& tensor) override;

  void made(const Tensor& tensor, bool filled) override;
  Tensor look(std::string_view function, const Tensor& tensor) override;

  graph::Recorder& recorder() { return recorder_; }
  Captures& captures() { return captures_; }
  // `tensor` as a value of the recording, whatever it is.
  Tensor value_of(const Tensor& tensor);
  // True for a tensor with data that the function made from nothing but data of the host.
  bool was_made(const Tensor& tensor) { return find_made(tensor) != nullptr; }
  // Errors: invalid_argument, if a write gave `tensor`, from outside, a history; undefined: any tensor.
  void check_histories(const Tensor& tensor) const;

 private:
  struct Made {
    Tensor tensor;        // kept, so that no other storage gets its address
    bool filled = false;  // its elements mean something
  };

  // A tensor from outside that was written, with the history that it had.
  struct Written {
    Tensor tensor;
    autograd::Edge edge;
    bool leaf = false;
  };

  void note_written(const Tensor& tensor);
  Made* find_made(const Tensor& tensor);
  bool is_frozen(const Tensor& tensor) const;
  void apply_traced(const OpCall& call);

  std::string function_;
  graph::Recorder recorder_;
  Captures captures_;
  const TensorList& frozen_;
  std::unordered_map<const void*, Made> made_;  // by storage
  std::vector<Written> written_;
};

// True for a value of a recording: a tensor without data.
inline bool is_recorded(const Tensor& tensor) { return tensor.impl()->storage == nullptr; }

}  // namespace tenon::lazy
