// Recording: names the recorder to which a tensor without data belongs. Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

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

  std::shared_ptr<const Recording> recording;
};

// "a value of recording 3 (bert.onnx), which has finished", or ", which is being recorded"; of a tensor without data.
std::string origin_of(const Tensor& tensor);

}  // namespace tenon
