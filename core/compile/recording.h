// Recording: what was recorded of one call of a function. Internal.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/compile/captures.h"
#include "core/compile/compile.h"
#include "core/compile/guards.h"
#include "core/compile/parts.h"
#include "core/global/value.h"
#include "core/graph/graph.h"

namespace tenon::lazy {

using Function = std::function<TensorList(const TensorList&)>;

// Where an input of the program comes from at each run.
struct Argument {
  RootOf of = RootOf::capture;
  size_t input = 0;
  bool whole = false;                // the storage of the argument as one axis
  bool part = false;                 // of this rank, of a global argument
  Tensor tensor = {};                // of a capture; of others when the function was recorded
  std::optional<SlotRef> slot = {};  // the capture is the gradient that this slot holds, or its storage
  bool whole_gradient = false;
  Draw draw = {};  // of random numbers

  // Those of this call begin at `begin`.
  Tensor of_call(const TensorList& inputs, RandomRange begin) const;
};

// In place of the number of an output: this rank holds nothing of the tensor.
constexpr size_t kNoPart = SIZE_MAX;

// Where a result of the function comes from.
struct ResultSource {
  enum Kind : uint8_t { output, argument, outside };
  Kind kind = output;
  size_t index = 0;                          // of the output of the program, or of the argument; kNoPart
  Tensor tensor = {};                        // from outside
  std::optional<global::Facts> global = {};  // the output is the part of this rank of such a tensor
};

// Argument `argument` of the program is overwritten with output `output`.
struct Write {
  size_t argument = 0;
  size_t output = 0;
};

// What a run does with the gradient that a leaf keeps.
struct SlotUpdate {
  enum Kind : uint8_t { keep, forget, output, outside };
  SlotRef slot;
  Kind kind = keep;
  size_t index = 0;  // of the output; kNoPart
  Tensor tensor = {};
  std::optional<global::Facts> global = {};  // as ResultSource has it
};

// The second half of a recording whose results want gradients.
struct BackwardPart {
  // What backward reads: an argument of the program as it was, or an output of the first half.
  struct Saved {
    bool argument = false;
    size_t index = 0;
  };
  // Where a gradient goes: to an argument of the function, or to one of Recording::wanting.
  struct Target {
    bool captured = false;
    size_t index = 0;
    std::optional<size_t> output = {};         // of `graph`; kNoPart; none: only results that are refused lead there
    std::optional<global::Facts> global = {};  // as ResultSource has it

    const Tensor& of(const TensorList& inputs, const TensorList& captures) const {
      return captured ? captures[index] : inputs[index];
    }
  };
  // A result that wants a gradient.
  struct OfResult {
    size_t number = 0;
    Status refused = {};                       // not ok: it has none, and whoever asks for it gets this error
    std::vector<bool> reaches = {};            // the targets of whose gradients it is a part; if refused or all come
    std::optional<global::Facts> global = {};  // the gradient is such a tensor
  };
  graph::Graph graph;        // before all passes
  std::vector<Saved> saved;  // the first inputs of `graph`; then come the gradients of `results`
  std::vector<OfResult> results;
  std::vector<Target> targets;
  // It computes on global tensors. What a rank computes does not show then which gradients it depends on, since another
  // rank may hold what they lead to. So the gradients of all results come, some of them as zeros; what only those reach
  // has no gradient in the end, as in an eager run.
  bool all_come = false;
};

struct Recording {
  CallShape shape;
  std::vector<Guard> guards;
  std::vector<size_t> argument_ranks;  // of the arguments of the function
  std::vector<Argument> arguments;     // of the program
  std::vector<ResultSource> results;
  std::vector<Write> writes;
  std::vector<size_t> written_globals;  // arguments that are written: of whose writes views must know
  TensorList captured_globals;          // the same of tensors from outside
  bool global = false;                  // it has global tensors
  uint64_t drawn = 0;                   // blocks of random numbers that a run takes
  std::vector<SlotUpdate> slots;
  std::vector<std::pair<Tensor, uint64_t>> frozen;  // with the version that each had
  graph::Graph recorded{""};                        // before all passes, forward and backward in one
  graph::Graph forward{""};
  TensorList wanting;  // captured tensors that gradients go to
  CompileMemory memory;
  std::shared_ptr<BackwardPart> backward;
};

// What a call under the recorder gave.
struct Taken {
  std::optional<Recording> recording;  // nothing was computed
  TensorList results;                  // without it: the call is over, its program has run in part
};

// What becomes of what the function writes outside: state, and gradients of leaves.
enum class Writes : uint8_t { kept, dropped };

// Calls `function` once and gives what it did. Nothing is computed, unless `parts` is given and the host reads an
// element. `lacks`: as graph::Recorder::Options has it. Errors: those of the function; what a recording cannot see.
Taken record(const Function& function, const CompileOptions& options, const TensorList& inputs, const CallShape& shape,
             Parts* parts, Writes writes = Writes::kept, const std::function<bool(const OpInfo&)>& lacks = {});

// In what `second` differs from `first`, as the end of a sentence; empty: in nothing.
std::string difference(const Recording& first, const Recording& second);

}  // namespace tenon::lazy
