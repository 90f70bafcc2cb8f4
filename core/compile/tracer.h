// Tracer: the interpreter under which a function is recorded. It replaces tensors from outside by values of the
// recorder, and refuses operations that a recording cannot see. Internal.
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
#include "core/global/global_program.h"
#include "core/graph/recorder.h"
#include "core/ops/op_call.h"
#include "core/tensor/host_watch.h"

namespace tenon::compilation {

// True for a value of a recording: a tensor without data, or one whose elements are sizes of the program. Global
// tensors have separate values.
inline bool is_recorded(const Tensor& tensor) {
  return tensor.impl()->storage == nullptr || tensor.impl()->stand_in != nullptr;
}

class Tracer final : public Interpreter, public HostWatch {
 public:
  // `gradients`: ops are recorded for gradients. `parts`: runs the program so far when the host reads an element; if it
  // is null, such a read is an error. `lacks`: as in Recorder::Options.
  Tracer(Device device, const CompileOptions& options, bool gradients, Parts* parts,
         const std::function<bool(const OpInfo&)>& lacks = {});
  // Undoes the function's changes to the histories of tensors from outside.
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
  // The recording as global tensors use it.
  global::GlobalProgram& parts_of_ranks() { return global_program_; }
  // A global tensor from outside that the function has used, and its number of writes before that.
  struct Global {
    Tensor tensor;
    uint64_t writes = 0;
  };
  const std::vector<Global>& globals() const { return globals_; }
  // True for a tensor that the function did not make.
  bool is_from_outside(const Tensor& tensor);
  // `tensor`, of any kind, as a value of the recording.
  Tensor value_of(const Tensor& tensor);
  // True for a tensor with data that the function made from host data alone.
  bool was_made(const Tensor& tensor) { return find_made(tensor) != nullptr; }
  // Number of blocks of random numbers that a run draws.
  uint64_t drawn() const { return drawn_; }
  // True if the program has run and the function continues eagerly.
  bool ended() const { return ended_ != nullptr; }
  // The real tensor for `tensor` after the program has run.
  Tensor real(const Tensor& tensor) const;
  // Errors: invalid_argument if a write gave `tensor`, which is from outside, a history. If `tensor` is undefined,
  // checks all tensors.
  void check_histories(const Tensor& tensor) const;

 private:
  struct Made {
    Tensor tensor;        // kept alive so that its address is not reused
    bool filled = false;  // true if its elements have been written
  };

  // A tensor from outside that was written, with its earlier history.
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
  void apply_global(const OpCall& call, const SpreadValue& value);
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
  std::optional<uint64_t> next_draw_;  // where the random numbers of the next op begin
  Parts* parts_;
  std::vector<std::weak_ptr<graph::Base>> bases_;  // the bases of all results; only if `parts_` is given
  std::unique_ptr<Ended> ended_;
  std::unordered_map<const void*, Made> made_;  // indexed by storage
  std::vector<Written> written_;
  global::GlobalProgram global_program_;
  std::vector<Global> globals_;
};

}  // namespace tenon::compilation
