// Recording: names the recorder to which a tensor without data belongs. Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "core/tensor/tensor.h"

namespace tenon {

// A program that a recorder records or has recorded. Errors name it. Its values keep this object alive.
struct Recording {
  std::string name;  // "recording 3 (bert.onnx)"
  std::atomic<bool> finished{false};
};

// The value that a tensor stands for while a program is recorded. The recorder derives from it what it needs beside.
struct RecordedValue {
  explicit RecordedValue(std::shared_ptr<const Recording> of) : recording(std::move(of)) {}
  virtual ~RecordedValue() = default;
  // The same value for another handle: as tensors over one storage, both see what is written through either.
  virtual std::unique_ptr<RecordedValue> alias() const { return std::make_unique<RecordedValue>(*this); }
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
