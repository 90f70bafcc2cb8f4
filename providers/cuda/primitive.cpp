#include "providers/cuda/primitive.h"

#include <algorithm>

#include "providers/cuda/lists.h"

namespace tenon::provider::cuda {

Geometry blocks_for(int64_t items, int32_t threads) {
  return {std::clamp<int64_t>((items + threads - 1) / threads, 1, most_blocks), threads};
}

ep_status launch_kernel(ep_stream* stream, CUfunction function, const Geometry& geometry, const void* arguments,
                        ep_error** error) {
  void* parameters[] = {const_cast<void*>(arguments)};
  const CUresult result = stream->device->driver->launch_kernel(
      function, static_cast<unsigned int>(geometry.blocks), 1, 1, static_cast<unsigned int>(geometry.threads), 1, 1,
      static_cast<unsigned int>(geometry.shared_bytes), stream->handle, parameters, nullptr);
  return result == CUDA_SUCCESS ? EP_STATUS_OK : driver_failed(stream->device, result, "launching a kernel", error);
}

Refusal find_kernel(ep_device& device, Family family, const char* name, CUfunction* out) {
  const CUresult result = device.modules.find(*device.driver, family, name, out);
  if (result == CUDA_SUCCESS) return {};
  const ep_status status = status_of(result);
  if (status == EP_STATUS_DEVICE_LOST) throw DriverError{result};
  const bool has_no_code = result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION;
  return Refusal::failure(has_no_code ? EP_STATUS_UNSUPPORTED : status, "%s of %s cannot be loaded: %s", name,
                          family_name(family), device.driver->text_of(result).c_str());
}

Refusal allow_shared_memory(ep_device& device, CUfunction function, int64_t bytes) {
  const CUresult result = device.driver->func_set_attribute(function, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                                            static_cast<int>(bytes));
  if (result == CUDA_SUCCESS) return {};
  const ep_status status = status_of(result);
  if (status == EP_STATUS_DEVICE_LOST) throw DriverError{result};
  return Refusal::failure(status, "a kernel cannot have %lld bytes of shared memory: %s", static_cast<long long>(bytes),
                          device.driver->text_of(result).c_str());
}

namespace {

// True for products that may use TF32.
bool may_round(const ep_primitive_desc& desc) {
  return desc.precision == EP_PRECISION_RELAXED && desc.operands[0].dtype == EP_DTYPE_f32 &&
         (desc.kind == EP_PRIMITIVE_matmul || desc.kind == EP_PRIMITIVE_convolution);
}

ep_status primitive_support(ep_device* device, const ep_primitive_desc* desc, ep_support_info* out_info,
                            ep_error** error) {
  const ep_status status = support(*device, "cuda", implementation_lists(), *desc, out_info, error);
  if (status == EP_STATUS_OK && may_round(*desc)) out_info->flags |= EP_SUPPORT_FLAG_RELAXED;
  return status;
}

ep_status primitive_create(ep_device* device, const ep_primitive_desc* desc, ep_primitive** out_primitive,
                           ep_primitive_info* out_info, ep_error** error) {
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  const Current current(device);
  if (current.result() != CUDA_SUCCESS) return driver_failed(device, current.result(), "making a primitive", error);
  try {
    return create(*device, "cuda", implementation_lists(), *desc, out_primitive, out_info, error);
  } catch (const DriverError& failure) {
    return driver_failed(device, failure.result, "loading a kernel", error);
  }
}

void primitive_destroy(ep_device*, ep_primitive* primitive) noexcept { destroy_primitive(primitive); }

ep_status primitive_workspace(ep_primitive* primitive, const ep_shape* shapes, uint32_t, uint64_t* out_bytes,
                              ep_error**) {
  *out_bytes = primitive->workspace(shapes);
  return EP_STATUS_OK;
}

ep_status primitive_launch(ep_primitive* primitive, ep_stream* stream, const ep_launch* launch, ep_fault*,
                           ep_error** error) {
  ep_device* device = stream->device;
  RecordableCall call(stream);
  if (const ep_status status = check_lost(device, error); status != EP_STATUS_OK) return status;
  const Current current(device);
  if (current.result() != CUDA_SUCCESS) {
    return driver_failed(device, current.result(), "launching a kernel", error);
  }
  return call.end(primitive->launch(stream, *launch, error));
}

}  // namespace

void fill_primitive(ep_device_ops* ops) {
  ops->primitive_support = entry<primitive_support>;
  ops->primitive_create = entry<primitive_create>;
  ops->primitive_destroy = primitive_destroy;
  ops->primitive_workspace = entry<primitive_workspace>;
  ops->primitive_launch = entry<primitive_launch>;
}

}  // namespace tenon::provider::cuda
