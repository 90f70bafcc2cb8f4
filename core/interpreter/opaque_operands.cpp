#include "core/interpreter/opaque_operands.h"

#include <algorithm>

#include "core/interpreter/operands.h"
#include "core/tensor/factory.h"
#include "core/vm/opaque.h"
#include "primitives/descriptor/descriptor.h"

namespace tenon {
namespace {

Dims dims_of(const ep_operand_desc& operand) {
  return Dims(std::span(operand.dims, static_cast<size_t>(operand.rank)));
}

// True if `operand` is row-major without gaps, with `elements` elements of `dtype`, so that a layout can represent it.
bool is_row_major(const ep_operand_desc& operand, DType dtype, int64_t elements) {
  const Dims dims = dims_of(operand);
  return operand.rank > 0 && (operand.flags & (EP_OPERAND_FLAG_SCALAR | EP_OPERAND_FLAG_CONSTANT)) == 0 &&
         operand.dtype == static_cast<int32_t>(dtype) && dtype_size(dtype) != 0 && element_count(dims) == elements &&
         std::equal(operand.strides, operand.strides + operand.rank, contiguous_strides(dims).begin());
}

bool may_be_opaque(const OpCall& call, std::span<const TensorMeta> outputs, const Lowering& lowering, uint32_t index) {
  const Lowering::Source& source = lowering.sources[index];
  const ep_operand_desc& operand = lowering.desc.operands[index];
  if (source.output >= 0) {
    const auto at = static_cast<size_t>(source.output);
    const TensorMeta& meta = outputs[at];
    return !call.outputs[at].defined() && is_contiguous(meta.dims, meta.strides) &&
           is_row_major(operand, meta.dtype, element_count(meta.dims));
  }
  if (source.input < 0) return false;
  const auto uses = std::count_if(lowering.sources.begin(), lowering.sources.begin() + lowering.desc.operand_count,
                                  [&](const Lowering::Source& other) { return other.input == source.input; });
  const TensorImpl& impl = *call.inputs[static_cast<size_t>(source.input)]->impl();
  return uses == 1 && impl.storage != nullptr && impl.contiguous && is_row_major(operand, impl.dtype, impl.elements);
}

void name_layout(ep_operand_desc* operand, int64_t token) {
  std::fill(std::begin(operand->strides), std::end(operand->strides), 0);
  operand->strides[0] = token;
  operand->alignment = 0;
  operand->flags |= EP_OPERAND_FLAG_OPAQUE;
}

bool supported(DeviceState* device, const ep_primitive_desc& desc, ep_support_info* info) {
  *info = {};
  info->struct_size = sizeof *info;
  info->struct_type = EP_STRUCT_SUPPORT_INFO;
  ep_error* error = nullptr;
  const ep_status code = device->ops.primitive_support(device->handle, &desc, info, &error);
  return loader::take_error(code, error, {}).ok();
}

// Sets the layouts of inputs that are already opaque.
bool name_present(const OpCall& call, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const Lowering plain = *lowering;
  bool named = false;
  for (uint32_t i = 0; i < plain.desc.operand_count; ++i) {
    if (plain.sources[i].input < 0 || !may_be_opaque(call, outputs, plain, i)) continue;
    const std::optional<Layout> layout = layout_of(*call.inputs[static_cast<size_t>(plain.sources[i].input)]);
    if (!layout || !(layout->dims() == dims_of(plain.desc.operands[i]))) continue;
    name_layout(&lowering->desc.operands[i], layout->token());
    named = true;
  }
  return named;
}

bool name_wished(const OpCall& call, std::span<const TensorMeta> outputs, const Lowering& plain,
                 const ep_support_info& info, Lowering* lowering) {
  bool named = false;
  for (uint32_t i = 0; i < plain.desc.operand_count; ++i) {
    ep_operand_desc& operand = lowering->desc.operands[i];
    if (info.layouts[i] <= 0 || descriptor::is_opaque(operand) || !may_be_opaque(call, outputs, plain, i)) continue;
    name_layout(&operand, info.layouts[i]);
    named = true;
  }
  return named;
}

}  // namespace

std::optional<Layout> layout_of(const Tensor& tensor) {
  const TensorImpl& impl = *tensor.impl();
  if (impl.storage == nullptr || !impl.contiguous || !fills_storage(impl)) return {};
  std::optional<Layout> layout = vm::layout_of(impl.storage);
  if (layout && layout->dtype() != impl.dtype) return {};
  return layout;
}

bool choose_layouts(const OpCall& call, DeviceState* device, std::span<const TensorMeta> outputs, Lowering* lowering) {
  const Lowering plain = *lowering;
  ep_support_info info;
  bool named = name_present(call, outputs, lowering);
  if (named && !supported(device, lowering->desc, &info)) {
    *lowering = plain;
    named = false;
  }
  if (!named && !supported(device, lowering->desc, &info)) return false;
  const Lowering present = *lowering;
  if (!name_wished(call, outputs, plain, info, lowering)) return named;
  if (supported(device, lowering->desc, &info)) return true;
  *lowering = present;  // some wish could not be followed
  return named;
}

Tensor in_layout(const Tensor& input, const PreparedOperand& operand, uint64_t* converted) {
  const Layout layout(operand.dtype, operand.dims, operand.token);
  const bool whole = input.contiguous() && fills_storage(*input.impl());
  const Tensor source = whole ? input : realigned(input, 1);  // otherwise `input` is only a part of a storage
  StorageOwner value = value_or_throw(vm::value_in(source.impl()->storage, layout, converted));
  if (!whole) *converted += static_cast<uint64_t>(source.bytes());
  TensorImpl* impl = make_impl(input.impl()->device, operand.dtype, operand.dims, element_count(operand.dims));
  impl->storage = value.release();
  return Tensor(impl);
}

Tensor in_plain(const Tensor& tensor, Use use) {
  const TensorImpl& impl = *tensor.impl();
  const SharedStorage plain = value_or_throw(impl.storage.plain(use));
  if (plain == impl.storage) return tensor;
  plain.retain_tensor();
  TensorImpl* made = make_impl(impl.device, impl.dtype, impl.dims, impl.elements);
  made->strides = impl.strides;
  made->contiguous = impl.contiguous;
  made->offset = impl.offset;
  made->storage = plain;
  return Tensor(made);
}

Tensor room_in_layout(DeviceState* device, const PreparedOperand& operand) {
  StorageOwner value = value_or_throw(vm::make_value(device, Layout(operand.dtype, operand.dims, operand.token)));
  TensorImpl* impl = make_impl(device, operand.dtype, operand.dims, element_count(operand.dims));
  impl->storage = value.release();
  return Tensor(impl);
}

Tensor result_in_layout(const Tensor& room, const PreparedOperand& operand, const TensorMeta& meta) {
  DeviceState* device = room.impl()->device;
  Storage* value = room.impl()->storage.at_hand();
  value->retain_tensor();
  TensorImpl* impl = make_impl(device, meta.dtype, meta.dims, element_count(meta.dims));
  const auto bytes = static_cast<uint64_t>(dtype_bytes(meta.dtype, impl->elements));
  impl->storage =
      vm::storage_of(device, bytes, Layout(operand.dtype, operand.dims, operand.token), StorageOwner(value));
  return Tensor(impl);
}

}  // namespace tenon
