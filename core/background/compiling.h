// Compiling: whether a program waits for kernels that a device compiles from text. Public.
#pragma once

#include <cstdint>

namespace tenon {

enum class Compiling : uint8_t {
  beside,  // ops run one by one until their kernel is there; results may move by roundings when it takes over
  wait,    // the first preparation waits, and every run launches the same kernels
};

}  // namespace tenon
