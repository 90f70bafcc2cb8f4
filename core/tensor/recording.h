// Recording: which recorder a tensor without data belongs to. Internal.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "core/tensor/tensor.h"

namespace tenon {

// A program being recorded, as errors name it; its values keep this alive.
struct Recording {
  std::string name;  // "recording 3 (bert.onnx)"
  std::atomic<bool> finished{false};
};

// What a tensor stands for while a program is recorded.
struct RecordedValue {
  std::shared_ptr<const Recording> recording;
  uint32_t id = 0;  // of the value in the program
};

// "a value of recording 3 (bert.onnx), which has finished", or ", which is being recorded"; of a tensor without data.
std::string origin_of(const Tensor& tensor);

}  // namespace tenon
