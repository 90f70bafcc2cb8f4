#include "core/tensor/dlpack.h"

#include <dlpack/dlpack.h>

#include <cstring>
#include <memory>
#include <optional>

#include "core/device/device_state.h"
#include "core/tensor/factory.h"
#include "primitives/text/format.h"

namespace tenon {
namespace {

// Codes that the oldest header we build with (0.6) lacks.
constexpr uint8_t kDLPackBool = 6;       // since DLPack 0.7
constexpr uint8_t kDLPackF8e4m3fn = 10;  // since DLPack 1.1
constexpr uint8_t kDLPackF8e5m2 = 12;

struct Exported {
  DLManagedTensor managed;
  Tensor tensor;
  Dims dims;
  Dims strides;
};

std::optional<DLDataType> dlpack_type(DType dtype) {
  const DTypeInfo& info = dtype_info(dtype);
  const auto bits = static_cast<uint8_t>(info.bits);
  if (dtype == DType::bf16) return DLDataType{kDLBfloat, 16, 1};
  if (dtype == DType::f8e4m3fn) return DLDataType{kDLPackF8e4m3fn, 8, 1};
  if (dtype == DType::f8e5m2) return DLDataType{kDLPackF8e5m2, 8, 1};
  switch (info.type_class) {
    case DTypeClass::BOOL: return DLDataType{kDLPackBool, 8, 1};
    case DTypeClass::INT:
      if (bits >= 8) return DLDataType{kDLInt, bits, 1};
      break;
    case DTypeClass::UINT:
      if (bits >= 8) return DLDataType{kDLUInt, bits, 1};
      break;
    case DTypeClass::FLOAT:
      if (bits >= 16) return DLDataType{kDLFloat, bits, 1};
      break;
    case DTypeClass::NONE: break;
  }
  return std::nullopt;
}

std::optional<DType> dtype_of_dlpack(DLDataType type) {
  if (type.lanes != 1) return std::nullopt;
  for (int32_t id = 1; id <= EP_DTYPE_u4; ++id) {
    const std::optional<DLDataType> candidate = dlpack_type(static_cast<DType>(id));
    if (candidate && candidate->code == type.code && candidate->bits == type.bits) return static_cast<DType>(id);
  }
  return std::nullopt;
}

// The device of a newer producer may be no value of the enumeration, so it is read as a plain integer.
int32_t device_type(const DLTensor& tensor) {
  int32_t type = 0;
  static_assert(sizeof tensor.device.device_type == sizeof type);
  std::memcpy(&type, &tensor.device.device_type, sizeof type);
  return type;
}

}  // namespace

DLManagedTensor* to_dlpack(const Tensor& tensor) {
  const std::optional<DLDataType> type = dlpack_type(tensor.dtype());
  if (!type) {
    throw Error(Subject{"to_dlpack"}, Code::unsupported,
                fmt::format("DLPack has no name for dtype {}.", dtype_name(tensor.dtype())));
  }
  if (tensor.impl()->storage == nullptr) refuse_recorded("to_dlpack: the tensor", tensor);
  void* data = tensor.data();
  if (data == nullptr && (tensor.elements() != 0 || !tensor.device().state()->mapped)) {
    throw Error(Subject{"to_dlpack"}, Code::unsupported,
                fmt::format("memory of {} has no address that other libraries can use.", tensor.device().spelling()),
                "Copy the tensor to the host first: to(Device::host()).");
  }
  auto exported = std::make_unique<Exported>();
  exported->tensor = tensor;
  exported->dims = tensor.dims();
  exported->strides = tensor.strides();
  exported->managed.dl_tensor.data = data;
  exported->managed.dl_tensor.device = {kDLCPU, 0};
  exported->managed.dl_tensor.ndim = tensor.rank();
  exported->managed.dl_tensor.dtype = *type;
  exported->managed.dl_tensor.shape = exported->dims.data();
  exported->managed.dl_tensor.strides = exported->strides.data();
  exported->managed.dl_tensor.byte_offset = 0;
  exported->managed.manager_ctx = exported.get();
  exported->managed.deleter = [](DLManagedTensor* self) { delete static_cast<Exported*>(self->manager_ctx); };
  return &exported.release()->managed;
}

Tensor from_dlpack(DLManagedTensor* managed) {
  if (managed == nullptr) throw Error(Subject{"from_dlpack"}, Code::invalid_argument, "the managed tensor is null.");
  const DLTensor& source = managed->dl_tensor;
  if (const int32_t type = device_type(source); type != kDLCPU) {
    throw Error(Subject{"from_dlpack"}, Code::unsupported,
                fmt::format("memory of DLPack device type {} cannot be used; only the CPU's (1) can.", type));
  }
  const std::optional<DType> dtype = dtype_of_dlpack(source.dtype);
  if (!dtype) {
    throw Error(Subject{"from_dlpack"}, Code::unsupported,
                fmt::format("no dtype is stored as DLPack code {} with {} bits and {} lanes.", int{source.dtype.code},
                            int{source.dtype.bits}, source.dtype.lanes));
  }
  if (source.ndim < 0 || source.ndim > EP_MAX_RANK) {
    throw Error(Subject{"from_dlpack"}, Code::invalid_argument,
                fmt::format("rank {} is outside [0, {}].", source.ndim, EP_MAX_RANK));
  }
  if (source.ndim > 0 && source.shape == nullptr) {
    throw Error(Subject{"from_dlpack"}, Code::invalid_argument,
                fmt::format("the shape of a tensor of rank {} is null.", source.ndim));
  }
  const auto rank = static_cast<size_t>(source.ndim);
  const Dims dims(std::span<const int64_t>(source.shape, rank));
  const Dims strides = source.strides == nullptr ? Dims() : Dims(std::span<const int64_t>(source.strides, rank));
  auto* data = source.data == nullptr ? nullptr : static_cast<char*>(source.data) + source.byte_offset;
  return borrow_memory("from_dlpack", data, dims, strides, *dtype, [managed] {
    if (managed->deleter != nullptr) managed->deleter(managed);
  });
}

}  // namespace tenon
