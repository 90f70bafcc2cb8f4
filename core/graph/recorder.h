// Recorder: the lazy interpreter. It keeps the records of ops on its values as a graph. It hands ops whose inputs are
// all known to the interpreter below it.
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
    // Whether to ask the device of every op if some rung of the ladder takes the op. An op that none takes throws
    // unsupported.
    bool check_support = false;
    // What errors call the recording beside its number: "bert.onnx".
    std::string name = {};
    // Ops that are recorded as their decompositions, if they have one; none: every op is recorded as itself.
    std::function<bool(const OpInfo&)> lacks = {};
  };

  // Values live on `device`. Known ops go to the interpreter that is current now.
  Recorder(Device device, Options options);
  explicit Recorder(Device device) : Recorder(device, Options{}) {}

  ~Recorder() override;
  Recorder(const Recorder&) = delete;
  Recorder& operator=(const Recorder&) = delete;

  // A new input of the program: a tensor without data, row-major.
  Tensor input(DType dtype, const Dims& dims) { return input(dtype, dims, Device(device_)); }
  Tensor input(DType dtype, const Dims& dims, Device device);
  // A new input of which the axes with a name in `symbols` (one per axis; empty: the size is a number) are open: each
  // name is a symbol of the graph's arena with the size in `hints` as its hint. The same name is the same size, here
  // and in other inputs. Sizes 0 and 1 are guarded at once. `name` is what errors call the input; empty: its number.
  // Errors: invalid_argument (a name with two hints).
  //
  // Code that reads sizes of a recorded tensor as numbers (dims(), elements(), a list of sizes that it does not take as
  // expressions) is less general and never wrong: the recorder notes the guard `S0 == 7`. signature.h binds the sizes
  // of a run and says which guard does not hold.
  Tensor input(DType dtype, const Dims& hints, std::span<const std::string> symbols, std::string name = {},
               Device device = {});
  // A new input with the sizes that `value` has, whatever they are.
  Tensor input_like(const Tensor& value);
  // `known`, which has data, as a value that may be written. The graph keeps its elements.
  Tensor variable(const Tensor& known);
  // The label of the nodes from now on: "node 14 (/encoder/MatMul)".
  void label(std::string text);

  // The value of `base`, which is one of this recording, as a tensor.
  Tensor whole(const std::shared_ptr<Base>& base);
  // Nodes recorded from now on have this number or a greater one.
  NodeId next_node() const { return graph_->last() == kNoNode ? 0 : graph_->last() + 1; }

  std::string name() const override;
  void apply(const OpCall& call) override;
  // Control flow, whose functions become regions.
  bool keeps(const OpInfo& op) const override;
  // True while the function of a region is recorded.
  bool in_region() const { return frames_.size() > 1; }
  bool host_value_known(const Tensor& tensor) override;

  // The arena of the program, for code that makes sizes of its own.
  symbolic::Arena& arena() { return graph_->arena(); }

  // The program will run at the hints of its sizes: values may be asked for their sizes after finish() too.
  void keep_sizes();
  // The program that computes `outputs`, without the nodes they do not need. The recorder is then empty, and another
  // recording begins; a value of the one that has finished is refused from then on.
  Graph finish(std::span<const Tensor> outputs);

 private:
  friend struct RecordedTensor;

  // A graph that is being recorded: the program, or a region of a node to come, inside of the frame before.
  struct Frame {
    uint64_t id = 0;
    std::string name = {};  // what errors call it
    std::shared_ptr<Graph> graph;
    std::unordered_map<const TensorImpl*, ValueId> constants = {};  // the graph keeps their tensors
    std::vector<std::pair<ValueId, ValueId>> captures = {};         // values of the frame before, as inputs of this one
    uint32_t label = 0;
  };
  // While one lives, nodes are recorded in the frame number `at`.
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
  // Opens the frame of a region and records there while it lives.
  class RegionScope;

  // While one lives the recorder itself looks at hints, which binds nobody.
  class HintScope {
   public:
    explicit HintScope(const Recorder& recorder) : depth_(recorder.reading_hints_) { ++depth_; }
    ~HintScope() { --depth_; }
    HintScope(const HintScope&) = delete;
    HintScope& operator=(const HintScope&) = delete;

   private:
    int32_t& depth_;
  };

  // What a read of sizes as numbers means.
  void read_sizes(const RecordedTensor& value, TensorImpl* tensor, SizeRead what, int64_t axis);
  bool is_open(const RecordedTensor& value) const;
  void bind_all_sizes(std::string_view reader);
  // The sizes of `value`, as short as they are known.
  SymDims sizes_of(const RecordedTensor& value) const;
  SymDims sizes_of(const Graph& graph, ValueId value) const;
  // Checks the result `value` of `op`, as its rule over expressions made it, against the one over hints.
  void check_hints(const OpInfo& op, ValueId value, const TensorMeta& meta) const;

  // Whether `call`, whose inputs are known, reads tensors that hold sizes; and computes it on expressions too.
  bool holds_sizes(const OpCall& call);
  void compute_sizes(const OpCall& call);
  // Notes that the result `value` has the sizes of `tensor`, which it is written into.
  void require_sizes(const OpInfo& op, const Tensor& tensor, ValueId value);

  bool compute_now(const OpCall& call, std::span<const TensorMeta> outputs) const;
  void infer(const OpCall& call, std::vector<TensorMeta>* outputs) const;
  void record(const OpCall& call, std::span<const TensorMeta> outputs);
  void begin();
  void check_values(const OpCall& call) const;
  // Errors: invalid_argument, with both names, for a value of another recording: "relu: argument 0 of shape [2] is
  // ...".
  void check_value(std::string_view op, const char* role, size_t index, const Tensor& tensor) const;

  // regions/record.cpp
  size_t go_to(size_t at);
  std::optional<size_t> open_frame(uint64_t id) const;
  // `value`, of the frame number `from`, in the current one: an input of each region between.
  ValueId carried_in(ValueId value, size_t from);
  ValueId captured(size_t frame, ValueId outer);
  void record_regions(const OpCall& call);
  Frame record_region(const OpCall& call, size_t body, const Node& node);
  TensorList region_inputs(const OpCall& call, const Node& node);
  TensorMeta hinted(ValueId value) const;

  Node node_of(const OpCall& call);
  // The value that `tensor` holds where the recording has come to; of a tensor with data the constant.
  ValueId value_of(const Tensor& tensor);
  // A view of the value `of`.
  ValueId apply_view(const ViewStep& view, ValueId of);
  // A tensor for `value`, seen through `chain` from `base`.
  Tensor tensor_of(ValueId value, const TensorMeta& meta, std::shared_ptr<Base> base, ViewChain chain, bool row_major);
  Tensor new_tensor(ValueId value, const TensorMeta& meta, bool row_major = true);
  Tensor view_of(const OpCall& call, ValueId value, const TensorMeta& meta);
  Tensor seen_through(const ViewStep& view, const Tensor& of);
  // Makes `value` what `tensor` holds from now on.
  void write(const Tensor& tensor, const Tensor& value, const OpInfo& op);

  DeviceState* device_;
  Options options_;
  Interpreter& known_;
  std::shared_ptr<Recording> recording_;
  std::vector<Frame> frames_;                                    // those that are open, the program first
  size_t at_ = 0;                                                // the one in which nodes are recorded
  std::shared_ptr<Graph> graph_;                                 // its graph
  std::unordered_map<uint64_t, std::shared_ptr<Graph>> graphs_;  // of all frames, by id
  std::unique_ptr<symbolic::RecordingArena> open_arena_;
  std::unordered_map<std::string, SymDim> symbols_;  // by name; as the inputs have them
  mutable int32_t reading_hints_ = 0;
  uint32_t label_ = 0;
};

}  // namespace tenon::graph
