// Libraries: NCCL and the CUDA driver, found at run time, and the parts of their C interfaces that the plug-in uses.
//
// No vendor headers are needed: functions.def has the prototypes, and this file has the constants. NCCL has kept them
// since 2.14 and promises them for libnccl.so.2; the CUDA driver keeps its interface too.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace tenon::provider::nccl {

using Result = int;
constexpr Result success = 0, in_progress = 7;
constexpr int oldest_version = 21400;  // 2.14: the first version with non-blocking communicators

struct Comm;  // ncclComm
struct UniqueId {
  char bytes[128];
};

// ncclConfig_t of NCCL 2.14. Newer versions treat missing fields as not set.
struct Config {
  size_t size = sizeof(Config);
  unsigned magic = 0xcafebeef, version = oldest_version;
  int blocking = 0;
};

// ncclDataType_t and ncclRedOp_t
enum Type : int { int8, uint8, int32, uint32, int64, uint64, float16, float32, float64, bfloat16, no_type = -1 };
enum Op : int { sum, prod };

using CudaResult = int;
constexpr CudaResult cuda_success = 0, cuda_not_ready = 600;
constexpr unsigned stream_non_blocking = 1, event_without_time = 2;
using CudaDevice = int;
using Context = void*;
using Stream = void*;
using Event = void*;

struct Libraries {
#define NCCL_FUNCTION(member, symbol, parameters) Result(*member) parameters = nullptr;
#define CUDA_FUNCTION(member, symbol, parameters) CudaResult(*member) parameters = nullptr;
#include "providers/nccl/functions.def"
#undef NCCL_FUNCTION
#undef CUDA_FUNCTION

  // Loads both libraries. On failure, sets `why_not` and `remedy`.
  void load();

  std::string name;  // "NCCL 2.28.3"
  std::string why_not, remedy;

  // For example "ncclSystemError" or "result 12 of NCCL"; cuda_text_of: "CUDA_ERROR_INVALID_VALUE".
  static std::string text_of(Result result);
  std::string cuda_text_of(CudaResult result) const;

 private:
  std::string load_functions();
};

}  // namespace tenon::provider::nccl
