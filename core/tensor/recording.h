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

// A program that a recorder records or has recorded. Errors name it. Its values keep this object alive.
struct Recording {
  std::string name;  // "recording 3 (bert.onnx)"
  std::atomic<bool> finished{false};
  bool at_hints = false;  // its program has run at the hints: open sizes are these numbers since it has finished
};

// What a tensor stands for while a program is recorded: a value of the program, or (if the tensor has data) elements of
// which some are sizes of the program. The recorder derives from it what it needs beside.
struct RecordedValue {
  explicit RecordedValue(std::shared_ptr<const Recording> of) : recording(std::move(of)) {}
  virtual ~RecordedValue() = default;
  // The same value, for another tensor that stands for it.
  virtual std::unique_ptr<RecordedValue> alias() const = 0;

  // Somebody reads sizes of `tensor`, which is open, as numbers. Notes what must hold for these numbers.
  virtual void read_sizes(TensorImpl& tensor, SizeRead what, int64_t axis) = 0;
  // What is decided on the layout of this tensor at the hints (whether reshape copies) may be decided otherwise at
  // other sizes. It matters only where memory is written that two tensors may share; then every size is bound.
  // `made` is the tensor that follows from the decision.
  virtual void note_layout(RecordedValue& made) = 0;
  // Somebody reads the elements of `tensor`, which has data. Notes what must hold for them.
  virtual void read_elements(TensorImpl&) {}
  // The sizes of `tensor`, which is open, as expressions.
  virtual BasicDims<SymDim> sizes(const TensorImpl& tensor) const = 0;
  // How often it, or what it is a view of, was written; and the op that wrote last, empty: nobody did.
  virtual uint64_t version() const { return 0; }
  virtual std::string_view written_by() const { return {}; }

  // A gradient was added to `gradient`, this value, which is the gradient of a leaf. `of_leaf`: what such values
  // remember from one step to the next.
  virtual void accumulated(const Tensor& gradient, std::shared_ptr<void>* of_leaf) {
    static_cast<void>(gradient), static_cast<void>(of_leaf);
  }

  // What computes with the value under the eager interpreter; null: nothing does.
  virtual Interpreter* interpreter() const { return nullptr; }
  // Carries out a composite, of whose tensors one is this value: call.op->compose(call), and what must go around it.
  virtual void compose(const OpCall& call) const;
  // The elements of `tensor`, a value without data in this process, for whoever reads them; undefined: there are none.
  virtual Tensor gathered(const Tensor& tensor) const;
  // What errors call it: "a value of recording 3 (bert.onnx), which has finished".
  virtual std::string origin() const;

  std::shared_ptr<const Recording> recording;
};

// Whether a value of which an interpreter() takes care was ever made: until then no call looks for one.
inline std::atomic<bool> values_elsewhere{false};
inline bool is_elsewhere(const Tensor& tensor) {
  const TensorImpl* impl = tensor.impl();
  return impl != nullptr && impl->storage == nullptr && impl->recorded != nullptr &&
         impl->recorded->interpreter() != nullptr;
}
// While one lives, the thread computes an op of values elsewhere: what it makes of nothing (indices, say) is the same
// wherever the op is computed.
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
// That of the first tensor of `call` that has one; null: of none.
const RecordedValue* value_elsewhere(const OpCall& call);
// `tensor`, or the elements that it stands for if it has no data itself. Errors: invalid_argument, which begins with
// `what` ("copy_to_host: the tensor").
Tensor with_elements(std::string_view what, const Tensor& tensor);

// How often the elements of `tensor` were written since they were made, and by which op last; empty: by none.
uint64_t write_count(const Tensor& tensor);
std::string_view last_writer(const Tensor& tensor);

// "a value of recording 3 (bert.onnx), which has finished", or ", which is being recorded"; of a tensor without data.
std::string origin_of(const Tensor& tensor);

}  // namespace tenon
