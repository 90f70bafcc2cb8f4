// Recorder: the lazy interpreter. It records ops on its values as a graph. Ops whose inputs are all known are passed to
// the interpreter below it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/device/export.h"
#include "core/graph/graph.h"
#include "core/ops/op_call.h"

namespace tenon {
struct Recording;
}

namespace tenon::graph {

struct Base;
struct RecordedTensor;
struct ViewStep;
class ViewChain;

class TENON_API Recorder final : public Interpreter {
 public:
  struct Options {
    // Asks the device of every op if a rung of the ladder takes it. An op that no rung takes throws unsupported.
    bool check_support = false;
    // Name of the recording in errors, in addition to its number: "bert.onnx".
    std::string name = {};
    // Returns true for ops that are recorded as their decompositions, if they have one. Empty: every op is recorded as
    // itself.
    std::function<bool(const OpInfo&)> lacks = {};
  };

  // New inputs are on `device`. Known ops are passed to the interpreter that is current now.
  Recorder(Device device, Options options);
  explicit Recorder(Device device) : Recorder(device, Options{}) {}

  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // A new input of the program: a tensor without data, row-major.
  Tensor input(DType dtype, const Dims& dims) { return input(dtype, dims, Device(device_)); }
  Tensor input(DType dtype, const Dims& dims, Device device);
  // A new input with open axes: those that have a name in `symbols` (one name per axis; an empty name makes the size a
  // number). Each name is a symbol of the graph's arena, with the size in `hints` as its hint. The same name means the
  // same size, also in other inputs. Sizes 0 and 1 are guarded at once. Errors call the input `name`, or its number if
  // `name` is empty. Errors: invalid_argument for a name with two hints.
  //
  // Code that reads sizes of a recorded tensor as numbers (dims(), elements(), a list of sizes that it does not take as
  // expressions) makes the recording less general but never wrong: the recorder adds the guard `S0 == 7`. signature.h
  // binds the sizes of a run and reports the guard that does not hold.
  Tensor input(DType dtype, const Dims& hints, std::span<const std::string> symbols, std::string name = {},
               Device device = {});
  // A new input with the sizes of `value`, which may be symbolic.
  Tensor input_like(const Tensor& value);
  // `known`, which has data, as a value that can be written. The graph keeps its elements.
  Tensor variable(const Tensor& known);
  // Sets the label of the following nodes: "node 14 (/encoder/MatMul)".
  void label(std::string text);

  // The value of `base`, a base of this recording, as a tensor.
  Tensor whole(const std::shared_ptr<Base>& base);
  // Nodes that are recorded from now on have at least this number.
  NodeId next_node() const { return graph_->last() == kNoNode ? 0 : graph_->last() + 1; }

  std::string name() const override;
  void apply(const OpCall& call) override;
  // True for control flow, whose functions become regions.
  bool keeps(const OpInfo& op) const override;
  // True while the function of a region is recorded.
  bool in_region() const { return frames_.size() > 1; }
  bool host_value_known(const Tensor& tensor) override;

  // The arena of the program, for code that makes its own sizes.
  symbolic::Arena& arena() { return graph_->arena(); }

  // Declares that the program will run at the hints of its sizes. Sizes of values can then be read even after finish().
  void keep_sizes();
  // The program that computes `outputs`, without unneeded nodes. The recorder is then empty and starts a new recording;
  // it refuses values of the finished one.
  Graph finish(std::span<const Tensor> outputs);

 private:
  friend struct RecordedTensor;

  // A graph that is being recorded: the program, or a region of a future node inside the frame before.
  struct Frame {
    uint64_t id = 0;
    std::string name = {};  // its name in errors
    std::shared_ptr<Graph> graph;
    std::unordered_map<const TensorImpl*, ValueId> constants = {};  // the graph keeps the tensors alive
    // values of the frame before, with the inputs of this frame that carry them
    std::vector<std::pair<ValueId, ValueId>> captures = {};
    uint32_t label = 0;
  };
  // While an At lives, nodes are recorded in frame number `at`.
  class At {
   public:
    At(Recorder& recorder, size_t at) : recorder_(recorder), before_(recorder.go_to(at)) {}
    ~At() { recorder_.go_to(before_); }
    At(const At&) = delete;
    At& operator=(const At&) = delete;

   private:
    Recorder& recorder_;
    size_t before_;
  };
  // Opens the frame of a region; nodes are recorded there while the scope lives.
  class RegionScope;

  // While a HintScope lives, the recorder itself reads hints, which adds no guards.
  class HintScope {
   public:
    explicit HintScope(const Recorder& recorder) : depth_(recorder.reading_hints_) { ++depth_; }
    ~HintScope() { --depth_; }
    HintScope(const HintScope&) = delete;
    HintScope& operator=(const HintScope&) = delete;

   private:
    int32_t& depth_;
  };

  // Handles a read of sizes as numbers.
  void read_sizes(const RecordedTensor& value, TensorImpl* tensor, SizeRead what, int64_t axis);
  bool is_open(const RecordedTensor& value) const;
  void bind_all_sizes(std::string_view reader);
  // The simplified sizes of `value`.
  SymDims sizes_of(const RecordedTensor& value) const;
  SymDims sizes_of(const Graph& graph, ValueId value) const;
  // Checks that the sizes of the result `value` of `op`, from its rule on expressions, agree with those from its rule
  // on hints.
  void check_hints(const OpInfo& op, ValueId value, const TensorMeta& meta) const;

  // holds_sizes: true if `call`, whose inputs are known, reads tensors that hold sizes. compute_sizes also computes the
  // call on expressions.
  bool holds_sizes(const OpCall& call);
  void compute_sizes(const OpCall& call);
  // Requires that the result `value` has the sizes of `tensor`, the tensor that it is written into.
  void require_sizes(const OpInfo& op, const Tensor& tensor, ValueId value);

  bool compute_now(const OpCall& call, std::span<const TensorMeta> outputs) const;
  void infer(const OpCall& call, std::vector<TensorMeta>* outputs) const;
  void record(const OpCall& call, std::span<const TensorMeta> outputs);
  void begin();
  void check_values(const OpCall& call) const;
  // Errors: invalid_argument for a value of another recording, with both names: "relu: argument 0 of shape [2] is ...".
  void check_value(std::string_view op, const char* role, size_t index, const Tensor& tensor) const;

  // Defined in regions/record.cpp:
  size_t go_to(size_t at);
  std::optional<size_t> open_frame(uint64_t id) const;
  // `value`, of frame number `from`, as a value of the current frame. It becomes an input of each region in between.
  ValueId carried_in(ValueId value, size_t from);
  ValueId captured(size_t frame, ValueId outer);
  void record_regions(const OpCall& call);
  Frame record_region(const OpCall& call, size_t body, const Node& node);
  TensorList region_inputs(const OpCall& call, const Node& node);
  TensorMeta hinted(ValueId value) const;

  Node node_of(const OpCall& call);
  // The value that `tensor` now holds in the recording; for a tensor with data its constant.
  ValueId value_of(const Tensor& tensor);
  // Applies a view to the value `of`.
  ValueId apply_view(const ViewStep& view, ValueId of);
  // A tensor for `value`, seen through `chain` from `base`.
  Tensor tensor_of(ValueId value, const TensorMeta& meta, std::shared_ptr<Base> base, ViewChain chain, bool row_major);
  Tensor new_tensor(ValueId value, const TensorMeta& meta, bool row_major = true);
  Tensor view_of(const OpCall& call, ValueId value, const TensorMeta& meta);
  Tensor seen_through(const ViewStep& view, const Tensor& of);
  // Makes `value` the new content of `tensor`.
  void write(const Tensor& tensor, const Tensor& value, const OpInfo& op);

  DeviceState* device_;
  Options options_;
  Interpreter& known_;
  std::shared_ptr<Recording> recording_;
  std::vector<Frame> frames_;                                    // open frames, the program first
  size_t at_ = 0;                                                // index of the frame in which nodes are recorded
  std::shared_ptr<Graph> graph_;                                 // the graph of this frame
  std::unordered_map<uint64_t, std::shared_ptr<Graph>> graphs_;  // the graphs of all frames, by id
  std::unique_ptr<symbolic::RecordingArena> open_arena_;
  std::unordered_map<std::string, SymDim> symbols_;  // by name; as the inputs have them
  mutable int32_t reading_hints_ = 0;
  uint32_t label_ = 0;
};

}  // namespace tenon::graph
