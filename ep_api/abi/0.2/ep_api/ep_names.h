// ep_names.h: the names of ids, for error texts of a provider: "matmul on f64" instead of "kind 8 on dtype 13". For C11
// and C++20, header only, not part of the contract.
#ifndef TENON_EP_API_EP_NAMES_H_
#define TENON_EP_API_EP_NAMES_H_

#include "ep_api.h"

#ifdef __cplusplus
#define EP_NAME_FUNCTION_ constexpr
#else
#define EP_NAME_FUNCTION_ static inline
#endif
#define EP_NAME_OF_ID_(name, id, ...) \
  case id: return #name;

// Each function returns static text, or "unknown" for an id that the tables of this build do not contain.
EP_NAME_FUNCTION_ const char* ep_primitive_name(int32_t kind) {
  switch (kind) {
#define EP_PRIMITIVE EP_NAME_OF_ID_
#include "primitives.def"
#undef EP_PRIMITIVE
    default: return "unknown";
  }
}

EP_NAME_FUNCTION_ const char* ep_dtype_name(int32_t dtype) {
  switch (dtype) {
#define EP_DTYPE EP_NAME_OF_ID_
#include "dtypes.def"
#undef EP_DTYPE
    default: return "unknown";
  }
}

EP_NAME_FUNCTION_ const char* ep_unary_name(int32_t op) {
  switch (op) {
#define EP_UNARY EP_NAME_OF_ID_
#include "scalar_ops.def"
#undef EP_UNARY
    default: return "unknown";
  }
}

EP_NAME_FUNCTION_ const char* ep_binary_name(int32_t op) {
  switch (op) {
#define EP_BINARY EP_NAME_OF_ID_
#include "scalar_ops.def"
#undef EP_BINARY
    default: return "unknown";
  }
}

EP_NAME_FUNCTION_ const char* ep_ternary_name(int32_t op) {
  switch (op) {
#define EP_TERNARY EP_NAME_OF_ID_
#include "scalar_ops.def"
#undef EP_TERNARY
    default: return "unknown";
  }
}

// Returns the name of a handle type: "opaque_fd" for EP_HANDLE_OPAQUE_FD.
EP_NAME_FUNCTION_ const char* ep_handle_name(int32_t type) {
  switch (type) {
    case EP_HANDLE_HOST_POINTER: return "host_pointer";
    case EP_HANDLE_OPAQUE_FD: return "opaque_fd";
    case EP_HANDLE_DMA_BUF: return "dma_buf";
    case EP_HANDLE_CUDA_POINTER: return "cuda_pointer";
    case EP_HANDLE_CUDA_STREAM: return "cuda_stream";
    case EP_HANDLE_CUDA_EVENT: return "cuda_event";
    case EP_HANDLE_CL_CONTEXT: return "cl_context";
    case EP_HANDLE_CL_MEM: return "cl_mem";
    case EP_HANDLE_CL_QUEUE: return "cl_queue";
    case EP_HANDLE_CL_EVENT: return "cl_event";
    case EP_HANDLE_VK_DEVICE: return "vk_device";
    case EP_HANDLE_VK_BUFFER: return "vk_buffer";
    case EP_HANDLE_VK_SEMAPHORE: return "vk_semaphore";
    default: return "unknown";
  }
}

// Returns the name of the scalar function that an epilogue applies.
EP_NAME_FUNCTION_ const char* ep_epilogue_name(const ep_epilogue* epilogue) {
  return epilogue->arity == 1 ? ep_unary_name(epilogue->op) : ep_binary_name(epilogue->op);
}

#undef EP_NAME_OF_ID_
#undef EP_NAME_FUNCTION_
#endif  // TENON_EP_API_EP_NAMES_H_
