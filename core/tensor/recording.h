// Recording: names the recorder to which a tensor without data belongs. Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/tensor/tensor.h"

namespace tenon {

class SymDim;

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

  std::shared_ptr<const Recording> recording;
};

// How often the elements of `tensor` were written since they were made, and by which op last; empty: by none.
uint64_t write_count(const Tensor& tensor);
std::string_view last_writer(const Tensor& tensor);

// "a value of recording 3 (bert.onnx), which has finished", or ", which is being recorded"; of a tensor without data.
std::string origin_of(const Tensor& tensor);

}  // namespace tenon
