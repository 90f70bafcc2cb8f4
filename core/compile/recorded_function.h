// RecordedFunction: the result of recording one call of a function. Internal.
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

namespace tenon::compilation {

using Function = std::function<TensorList(const TensorList&)>;

// The source of an input of the program at each run.
struct Argument {
  RootOf of = RootOf::capture;
  size_t input = 0;
  bool whole = false;                // the whole storage of the argument as one axis
  bool part = false;                 // this rank's part of a global argument
  Tensor tensor = {};                // the captured tensor; for other sources the tensor at the time of recording
  std::optional<SlotRef> slot = {};  // the capture is the gradient in this slot, or its storage
  bool whole_gradient = false;
  Draw draw = {};  // for random numbers

  // The tensor for a call whose random numbers begin at `begin`.
  Tensor of_call(const TensorList& inputs, RandomRange begin) const;
};

// Used as the index of an output if this rank holds no part of the tensor.
constexpr size_t kNoPart = SIZE_MAX;

// The source of a result of the function.
struct ResultSource {
  enum Kind : uint8_t { output, argument, outside };
  Kind kind = output;
  size_t index = 0;                          // the output of the program or the argument; or kNoPart
  Tensor tensor = {};                        // for `outside`: the tensor
  std::optional<global::Facts> global = {};  // the output is this rank's part of a global tensor with these facts
};

// Argument `argument` of the program is overwritten with output `output`.
struct Write {
  size_t argument = 0;
  size_t output = 0;
};

// The effect of a run on the gradient that a leaf keeps.
struct SlotUpdate {
  enum Kind : uint8_t { keep, forget, output, outside };
  SlotRef slot;
  Kind kind = keep;
  size_t index = 0;  // the output; or kNoPart
  Tensor tensor = {};
  std::optional<global::Facts> global = {};  // as in ResultSource
};

// The second half of a recording whose results want gradients.
struct BackwardPart {
  // A value that backward reads: an argument of the program before it was written, or an output of the first half.
  struct Saved {
    bool argument = false;
    size_t index = 0;
  };
  // The destination of a gradient: an argument of the function, or an element of RecordedFunction::wanting.
  struct Target {
    bool captured = false;
    size_t index = 0;
    // output of `graph`, or kNoPart; none: only refused results lead to this target
    std::optional<size_t> output = {};
    std::optional<global::Facts> global = {};  // as in ResultSource

    const Tensor& of(const TensorList& inputs, const TensorList& captures) const {
      return captured ? captures[index] : inputs[index];
    }
  };
  // A result that wants a gradient.
  struct OfResult {
    size_t number = 0;
    Status refused = {};  // not ok: the result has no gradient, and a backward from it fails with this error
    std::vector<bool> reaches =
        {};  // targets that this gradient flows to; set only if `refused` is an error or all_come is true
    std::optional<global::Facts> global = {};  // the gradient is a global tensor with these facts
  };
  graph::Graph graph;        // before all passes
  std::vector<Saved> saved;  // the first inputs of `graph`; the gradients of `results` follow
  std::vector<OfResult> results;
  std::vector<Target> targets;
  // True if it computes on global tensors. The graph of one rank does not show which gradients it depends on, because
  // another rank may hold the tensors in between. So all results get a gradient, some of them zeros. Targets that only
  // those zeros reach get no gradient in the end, as in an eager run.
  bool all_come = false;
};

struct RecordedFunction {
  CallShape shape;
  std::vector<Guard> guards;
  std::vector<size_t> argument_ranks;  // the ranks of the function's arguments
  std::vector<Argument> arguments;     // the arguments of the program
  std::vector<ResultSource> results;
  std::vector<Write> writes;
  std::vector<size_t> written_globals;  // global arguments that are written: their views must know of the writes
  TensorList captured_globals;          // global tensors from outside that are written
  bool global = false;                  // it uses global tensors
  uint64_t drawn = 0;                   // blocks of random numbers that a run draws
  std::vector<SlotUpdate> slots;
  std::vector<std::pair<Tensor, uint64_t>> frozen;  // frozen tensors, each with its version
  graph::Graph recorded{""};                        // before all passes, forward and backward in one
  graph::Graph forward{""};
  TensorList wanting;  // captured tensors that receive gradients
  CompileMemory memory;
  std::shared_ptr<BackwardPart> backward;
};

// The outcome of a call under the recorder.
struct Taken {
  std::optional<RecordedFunction> recording;  // set if nothing was computed
  TensorList results;                         // otherwise the results of the call; only a part of its program has run
};

// Selects if the writes of the function to tensors from outside and to gradients of leaves are kept.
enum class Writes : uint8_t { kept, dropped };

// Calls `function` once and returns what it did. Nothing is computed, unless `parts` is given and the host reads an
// element. `lacks`: as in graph::Recorder::Options. Errors: those of the function; invalid_argument for anything that a
// recording cannot see.
Taken record(const Function& function, const CompileOptions& options, const TensorList& inputs, const CallShape& shape,
             Parts* parts, Writes writes = Writes::kept, const std::function<bool(const OpInfo&)>& lacks = {});

// The first difference of `second` from `first`, as the end of a sentence; empty if they are equal.
std::string difference(const RecordedFunction& first, const RecordedFunction& second);

}  // namespace tenon::compilation
