// Tracer: the interpreter under which a function is recorded. It gives the recorder values in place of the tensors from
// outside, and refuses what a recording cannot see. Internal.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/autograd/node.h"
#include "core/compile/captures.h"
#include "core/compile/ended.h"
#include "core/compile/parts.h"
#include "core/global/recorded.h"
#include "core/graph/recorder.h"
#include "core/ops/op_call.h"
#include "core/tensor/host_watch.h"

namespace tenon::lazy {

// True for a value of a recording: a tensor without data, or one whose elements are sizes of the program. Global
// tensors have values of their own.
inline bool is_recorded(const Tensor& tensor) {
  return tensor.impl()->storage == nullptr || tensor.impl()->recorded != nullptr;
}

class Tracer final : public Interpreter, public HostWatch {
 public:
  // `gradients`: ops are remembered. `parts`: runs what was recorded where the host reads an element; null: that is an
  // error. `lacks`: as Recorder::Options has it.
  Tracer(Device device, const CompileOptions& options, bool gradients, Parts* parts,
         const std::function<bool(const OpInfo&)>& lacks = {});
  // Takes back what the function did to the histories of tensors from outside.
  ~Tracer() override;
  Tracer(const Tracer&) = delete;
  Tracer& operator=(const Tracer&) = delete;

  std::string name() const override { return recorder_.name(); }
  void apply(const OpCall& call) override;
  bool keeps(const OpInfo& op) const override;
  bool host_value_known(const Tensor& tensor) override;

  void made(const Tensor& tensor, bool filled) override;
  Tensor look(std::string_view function, const Tensor& tensor) override;
  RandomRange draw(uint64_t blocks) override;

  graph::Recorder& recorder() { return recorder_; }
  Captures& captures() { return captures_; }
  // The program as global tensors see it.
  global::Recorded& parts_of_ranks() { return recorded_; }
  // A global tensor from outside that the function has used, and how often it was written before.
  struct Global {
    Tensor tensor;
    uint64_t writes = 0;
  };
  const std::vector<Global>& globals() const { return globals_; }
  // True for a tensor that the function has not made.
  bool is_from_outside(const Tensor& tensor);
  // `tensor` as a value of the recording, whatever it is.
  Tensor value_of(const Tensor& tensor);
  // True for a tensor with data that the function made from nothing but data of the host.
  bool was_made(const Tensor& tensor) { return find_made(tensor) != nullptr; }
  // How many blocks of random numbers a run takes.
  uint64_t drawn() const { return drawn_; }
  // True if the program has run, and the function goes on eagerly.
  bool ended() const { return ended_ != nullptr; }
  // What `tensor` is now, after the end of the program.
  Tensor real(const Tensor& tensor) const;
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
  void apply_control(const OpCall& call);
  void apply_global(const OpCall& call, const RecordedValue& value);
  void note_global(const Tensor& tensor);
  void note_base(const Tensor& value);
  void apply_eagerly(const OpCall& call);
  void end_program();
  [[noreturn]] void refuse_look(std::string_view function, const Tensor& tensor) const;

  const std::string& function_;
  graph::Recorder recorder_;
  Captures captures_;
  const TensorList& frozen_;
  uint64_t drawn_ = 0;                 // blocks of random numbers
  std::optional<uint64_t> next_draw_;  // where the numbers of the op that comes now begin
  Parts* parts_;
  std::vector<std::weak_ptr<graph::Base>> bases_;  // of all results, while `parts_` is given
  std::unique_ptr<Ended> ended_;
  std::unordered_map<const void*, Made> made_;  // by storage
  std::vector<Written> written_;
  global::Recorded recorded_;
  std::vector<Global> globals_;
};

}  // namespace tenon::lazy
