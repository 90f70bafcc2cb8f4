// Recording: names the recorder to which a tensor without data belongs. Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

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

// The value behind a tensor while a program is recorded: a value of the program or, if the tensor has data, elements
// some of which are sizes of the program. The recorder derives its own type from it.
struct RecordedValue {
  explicit RecordedValue(std::shared_ptr<const Recording> of) : recording(std::move(of)) {}
  virtual ~RecordedValue() = default;
  // A copy of this value for another tensor.
  virtual std::unique_ptr<RecordedValue> alias() const = 0;

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
  // The number of writes to the value, or to the value it is a view of, and the op of the last write (empty: none).
  virtual uint64_t version() const { return 0; }
  virtual std::string_view written_by() const { return {}; }

  // Called when a gradient was added to `gradient`, this value, which is the gradient of a leaf. `of_leaf` is state
  // that such values keep from one step to the next.
  virtual void accumulated(const Tensor& gradient, std::shared_ptr<void>* of_leaf) {
    static_cast<void>(gradient), static_cast<void>(of_leaf);
  }

  // The interpreter that computes with the value under the eager interpreter; null: none.
  virtual Interpreter* interpreter() const { return nullptr; }
  // Carries out a composite one of whose tensors is this value: call.op->compose(call), with the setup that it needs.
  virtual void compose(const OpCall& call) const;
  // The elements of `tensor`, a value without data in this process; undefined if there are none.
  virtual Tensor gathered(const Tensor& tensor) const;
  // The value's name in errors: "a value of recording 3 (bert.onnx), which has finished".
  virtual std::string origin() const;

  std::shared_ptr<const Recording> recording;
};

// True once a value with an interpreter() has been made; until then no call looks for one.
inline std::atomic<bool> values_elsewhere{false};
inline bool is_elsewhere(const Tensor& tensor) {
  const TensorImpl* impl = tensor.impl();
  return impl != nullptr && impl->storage == nullptr && impl->recorded != nullptr &&
         impl->recorded->interpreter() != nullptr;
}
// While this object lives, the thread computes an op on values elsewhere. Tensors that it makes without inputs
// (indices, say) are the same wherever the op is computed.
class MadeEverywhere {
 public:
  explicit MadeEverywhere(bool wanted) : before_(active) { active = active || wanted; }
  ~MadeEverywhere() { active = before_; }
  MadeEverywhere(const MadeEverywhere&) = delete;
  MadeEverywhere& operator=(const MadeEverywhere&) = delete;

  static inline thread_local constinit bool active = false;

 private:
  bool before_;
};
// The value of the first tensor of `call` that has an interpreter(); null if there is none.
const RecordedValue* value_elsewhere(const OpCall& call);
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
