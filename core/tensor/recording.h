// StandIn: what a tensor without a storage of its own stands for, a recorded value or a tensor spread over ranks.
// Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/device/call_context.h"
#include "core/tensor/tensor.h"

namespace tenon {

class Interpreter;
class SymDim;
struct OpCall;

// A program that a recorder is recording or has recorded. Errors name it. Its values keep this object alive.
struct Recording {
  std::string name;  // "recording 3 (bert.onnx)"
  std::atomic<bool> finished{false};
  bool at_hints = false;  // true once the program has run at the hints: open sizes then have these numbers
};

struct RecordedValue;
struct SpreadValue;

// The thing that a tensor stands for if it is not just elements in a storage.
struct StandIn {
  virtual ~StandIn() = default;
  // A copy for another tensor.
  virtual std::unique_ptr<StandIn> alias() const = 0;
  // This object as the derived type; null if it is of the other one.
  virtual RecordedValue* recorded() { return nullptr; }
  virtual SpreadValue* spread() { return nullptr; }
  // The number of writes to the value, or to the value it is a view of, and the op of the last write (empty: none).
  virtual uint64_t version() const { return 0; }
  virtual std::string_view written_by() const { return {}; }
  // The value's name in errors: "a value of recording 3 (bert.onnx), which has finished".
  virtual std::string origin() const = 0;
};

// A value of a program that is being recorded or, if the tensor has data, elements some of which are sizes of the
// program. The recorder derives its own type from it.
struct RecordedValue : StandIn {
  explicit RecordedValue(std::shared_ptr<const Recording> of) : recording(std::move(of)) {}
  RecordedValue* recorded() final { return this; }
  std::string origin() const override;

  // Called when sizes of `tensor`, which is open, are read as numbers. Notes the conditions under which these numbers
  // hold.
  virtual void read_sizes(TensorImpl& tensor, SizeRead what, int64_t axis) = 0;
  // Called when code decides something from the layout of this tensor at the hints (such as whether reshape copies).
  // Other sizes may lead to another decision. That matters only if memory is written that two tensors may share; then
  // every size is bound. `made` is the tensor that results from the decision.
  virtual void note_layout(RecordedValue& made) = 0;
  // Called when the elements of `tensor`, which has data, are read. Notes the conditions under which they hold.
  virtual void read_elements(TensorImpl&) {}
  // The sizes of `tensor`, which is open, as expressions.
  virtual BasicDims<SymDim> sizes(const TensorImpl& tensor) const = 0;

  std::shared_ptr<const Recording> recording;
};

// A tensor whose elements are spread over ranks: this process has no storage for the whole.
struct SpreadValue : StandIn {
  SpreadValue* spread() final { return this; }

  // The interpreter that computes with the value under the eager interpreter.
  virtual Interpreter& interpreter() const = 0;
  // Carries out a composite one of whose tensors is this value: call.op->compose(call), with the setup that it needs.
  virtual void compose(const OpCall& call) const = 0;
  // All elements of `tensor`, which stands for this value. Throws invalid_argument if this rank cannot have them.
  virtual Tensor gathered(const Tensor& tensor) const = 0;
  // Called when a gradient was added to `gradient`, this value, which is the gradient of a leaf. `of_leaf` is state
  // that such values keep from one step to the next.
  virtual void accumulated(const Tensor& gradient, std::shared_ptr<void>* of_leaf) = 0;
};

// The recorded or the spread value that a tensor stands for; null: none of that type.
inline RecordedValue* recorded_value(const TensorImpl& impl) {
  return impl.stand_in == nullptr ? nullptr : impl.stand_in->recorded();
}
inline SpreadValue* spread_value(const Tensor& tensor) {
  const TensorImpl* impl = tensor.impl();
  const bool stands = impl != nullptr && impl->storage == nullptr && impl->stand_in != nullptr;
  return stands ? impl->stand_in->spread() : nullptr;
}

// True once a SpreadValue has been made; until then no call looks for one.
inline std::atomic<bool> values_elsewhere{false};
inline bool is_elsewhere(const Tensor& tensor) { return spread_value(tensor) != nullptr; }
// While this object lives, the thread computes an op on values elsewhere. Tensors that it makes without inputs
// (indices, say) are the same wherever the op is computed.
class MadeEverywhere : ContextScope<&CallContext::everywhere> {
 public:
  explicit MadeEverywhere(bool wanted) : ContextScope(call_context.everywhere || wanted) {}
};
// The value of the first tensor of `call` that is spread over ranks; null if there is none.
const SpreadValue* value_elsewhere(const OpCall& call);
// `tensor`, or the tensor with its elements if it has no data itself. Errors: invalid_argument, with `what`
// ("copy_to_host: the tensor") at its beginning.
Tensor with_elements(std::string_view what, const Tensor& tensor);

// The number of writes to `tensor` since it was made, and the op of the last write (empty: none).
uint64_t write_count(const Tensor& tensor);
std::string_view last_writer(const Tensor& tensor);

// The name of a tensor without data in errors: "a value of recording 3 (bert.onnx), which has finished" or ", which is
// being recorded".
std::string origin_of(const Tensor& tensor);

}  // namespace tenon
