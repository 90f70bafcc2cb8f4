// OpNode: the node of an op of the table. It saves only what the row demands. Internal.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/autograd/gradient_row.h"
#include "core/autograd/inline_list.h"
#include "core/autograd/node.h"
#include "core/autograd/saved.h"
#include "core/ops/op_call.h"
#include "core/ops/sym_call.h"

namespace tenon::autograd {

// The shape of an input's gradient, if it differs from the first result.
struct InputShape {
  Dims dims;
  DType dtype = DType::none;
  DeviceState* device = nullptr;
  std::shared_ptr<const SymDims> open = {};  // sizes of a recorded input, some of them expressions
};

class OpNode final : public Node {
 public:
  // Makes the node of `call` before it runs, under the interpreter that runs it. edges[i] belongs to input i.
  static OpNode* make(const OpCall& call, const GradientRow& row, std::span<const Edge> edges);
  // Makes the node for a view of a tensor of the shape `input`, without a call.
  static OpNode* make_view(const OpInfo& op, const GradientRow& row, const void* attributes, const InputShape& input,
                           const Edge& edge);
  // Saves the results that backward needs, after the call.
  void take_results(const OpCall& call);

  const OpInfo& op() const { return *op_; }
  std::string_view name() const override { return op_->name; }
  size_t result_count() const override { return result_count_; }
  std::span<const Edge> edges() const override { return edges_.items(); }
  void run(std::span<const Tensor> of_results, uint64_t wanted, std::span<Tensor> of_inputs) override;
  void drop_saved() override;

  bool holds_input(size_t i) const { return (inputs_ >> i & 1) != 0; }
  // Throws invalid_argument if the tensor was written since.
  Tensor saved_input(size_t i) const;
  Tensor saved_result(size_t i) const;
  const void* attributes() const { return attributes_.data(); }
  // The attributes and scalars that are expressions of a recording; null: there are none.
  const std::vector<Patch>* patches() const { return patches_.get(); }
  Scalar scalar(size_t slot) const { return scalars_[slot]; }
  // Null: like the first result.
  const InputShape* shape(size_t i) const { return shapes_.empty() ? nullptr : &shapes_[i]; }

 private:
  friend class NodeMemory;
  OpNode(const OpInfo& op, const GradientRow& row) : op_(&op), row_(&row) {}
  void destroy() override;
  void keep_attributes(const void* attributes);
  void keep_scalars(std::span<const Scalar> scalars);
  void save_inputs(const OpCall& call, std::span<const Edge> edges);
  void keep_shapes(const OpCall& call);

  const OpInfo* op_;
  const GradientRow* row_;
  uint32_t inputs_ = 0;   // bits of the saved inputs
  uint32_t results_ = 0;  // bits of the saved results
  uint32_t result_count_ = 1;
  bool dropped_ = false;
  InlineList<Edge, 3> edges_;
  InlineList<SavedTensor, 3> saved_;  // the inputs, then the results, in order
  InlineList<uint64_t, 5> attributes_;
  InlineList<Scalar, 3> scalars_;
  std::vector<InputShape> shapes_;  // empty: all like the first result
  std::unique_ptr<const std::vector<Patch>> patches_;
};

}  // namespace tenon::autograd
