// Compiling: decides if a program waits for kernels that a device compiles from text. Public.
#pragma once

#include <cstdint>

namespace tenon {

enum class Compiling : uint8_t {
  beside,  // ops run one by one until their kernel is ready; results may then change by roundings
  wait,    // the first preparation waits for the kernels, and every run launches the same ones
};

}  // namespace tenon
