#include <fmt/core.h>

#include "providers/cuda/device.h"

namespace tenon::provider::cuda {
namespace {

void device_close(ep_device* device) noexcept { close_device(device); }

// Makes a memory pool for this device. The default pool stays as other users set it, and all our blocks are freed with
// our pool. Some drivers in virtual machines report pools but refuse to make one; the device then uses plain blocks.
CUresult make_pool(ep_device* device) {
  CUmemPoolProps wanted{};
  wanted.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  wanted.handleTypes = CU_MEM_HANDLE_TYPE_NONE;
  wanted.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  wanted.location.id = device->facts.number;
  const CUresult result = device->driver->mem_pool_create(&device->pool, &wanted);
  if (result == CUDA_SUCCESS) {
    return device->driver->stream_create(&device->allocation_stream, CU_STREAM_NON_BLOCKING, 0);
  }
  device->pool = nullptr;
  return status_of(result) == EP_STATUS_DEVICE_LOST ? result : CUDA_SUCCESS;
}

// The failure of opening a device, with causes that only its first use reveals.
DriverFailure why_not_open(const Driver& driver, const DeviceFacts& facts, CUresult result) {
  if (result == CUDA_ERROR_NO_BINARY_FOR_GPU || result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION ||
      result == CUDA_ERROR_INVALID_PTX) {
    return {EP_STATUS_UNSUPPORTED,
            fmt::format("This build of the cuda provider has no code for compute capability {}.{} ({}); it has {}.",
                        facts.capability / 10, facts.capability % 10, driver.text_of(result), TENON_CUDA_ARCHITECTURES),
            fmt::format("Build it with -DCMAKE_CUDA_ARCHITECTURES={}.", facts.capability)};
  }
  const ep_status status = status_of(result);
  return {status == EP_STATUS_DEVICE_LOST ? EP_STATUS_INTERNAL : status,
          fmt::format("{} cannot be opened: {}.", facts.name, driver.text_of(result)),
          "Check with nvidia-smi if another process holds it or if it has failed."};
}

}  // namespace

ep_status driver_failed(ep_device* device, CUresult result, const char* doing, ep_error** error) {
  const ep_status status = status_of(result);
  const std::string text = device->driver->text_of(result);
  if (status == EP_STATUS_DEVICE_LOST) {
    int lives = 0;
    device->lost.compare_exchange_strong(lives, static_cast<int>(result));
    const char* remedy = result == CUDA_ERROR_NOT_INITIALIZED
                             ? "CUDA does not survive a fork: open the device in the process that uses it."
                             : "Close the device and open it again, or restart the program.";
    return fail_with_remedy(device->host, error, status, remedy, "%s was lost while %s: %s.",
                            device->facts.name.c_str(), doing, text.c_str());
  }
  return fail(device->host, error, status, "%s failed while %s: %s.", device->facts.name.c_str(), doing, text.c_str());
}

ep_status check_lost(ep_device* device, ep_error** error) {
  const int lost = device->lost.load(std::memory_order_relaxed);
  if (lost == 0) return EP_STATUS_OK;
  return driver_failed(device, static_cast<CUresult>(lost), "doing earlier work", error);
}

ep_status open_device(const ep_host* host, const Driver& driver, const DeviceFacts& facts, ep_device** out_device,
                      ep_error** error) {
  ep_device* device = make<ep_device>(host);
  device->driver = &driver;
  device->facts = facts;
  device->compiler = std::make_unique<NvrtcCompiler>(host, static_cast<uint32_t>(facts.capability));
  device->cudnn = std::make_unique<Cudnn>();
  CUresult result = driver.device_primary_ctx_retain(&device->context, facts.number);
  if (result == CUDA_SUCCESS) {
    const Current current(device);
    result = current.result();
    if (result == CUDA_SUCCESS && facts.memory_pools) result = make_pool(device);
    CUfunction function = nullptr;
    if (result == CUDA_SUCCESS) result = device->modules.find(driver, Family::MOVE, "bits_4", &function);
  } else {
    device->context = nullptr;
  }
  if (result == CUDA_SUCCESS) {
    *out_device = device;
    return EP_STATUS_OK;
  }
  const DriverFailure failure = why_not_open(driver, facts, result);
  close_device(device);
  return fail_text(host, error, failure.status, failure.sentence, failure.remedy);
}

void close_device(ep_device* device) noexcept {
  if (device == nullptr) return;
  if (device->context != nullptr) {
    {
      const Current current(device);
      device->cublaslt.release();
      device->cudnn->release();
      device->modules.release(*device->driver);
      if (device->allocation_stream != nullptr) device->driver->stream_destroy(device->allocation_stream);
      if (device->pool != nullptr) device->driver->mem_pool_destroy(device->pool);
    }
    device->driver->device_primary_ctx_release(device->facts.number);
  }
  destroy(device);
}

ep_device_ops device_ops() {
  ep_device_ops ops{};
  ops.device_close = device_close;
  fill_memory(&ops);
  fill_stream(&ops);
  fill_event(&ops);
  fill_peer(&ops);
  fill_primitive(&ops);
  fill_interop(&ops);
  fill_command_list(&ops);
  fill_modules(&ops);
  return ops;
}

}  // namespace tenon::provider::cuda
