#include "sdk/conformance/primitive/layout_work.h"

#include <algorithm>
#include <cstring>

#include "primitives/descriptor/descriptor.h"
#include "primitives/dtype/dtype.h"
#include "primitives/reference/reference.h"
#include "primitives/table/table.h"
#include "tests/cases/compare.h"

namespace tenon::conformance {
namespace {

constexpr uint64_t workspace_alignment = 256;

bool is_output(const ep_primitive_desc& desc, uint32_t index) {
  return table::is_output(desc.kind, desc.operands[index].role);
}

int64_t count_of(const ep_operand_desc& operand) {
  int64_t count = 1;
  for (int32_t axis = 0; axis < operand.rank; ++axis) count *= operand.dims[axis];
  return count;
}

uint64_t element_bytes(const ep_operand_desc& operand) {
  return static_cast<uint64_t>(dtype_size(static_cast<DType>(operand.dtype)));
}

// Calls move(strided, row_major) with the byte offsets of each element.
template <class Move>
void for_each_element(const ep_operand_desc& operand, const Move& move) {
  const uint64_t size = element_bytes(operand);
  for (int64_t i = 0; i < count_of(operand); ++i) {
    int64_t rest = i, at = 0;
    for (int32_t axis = operand.rank; axis-- > 0; rest /= operand.dims[axis]) {
      at += rest % operand.dims[axis] * operand.strides[axis];
    }
    move(static_cast<uint64_t>(at) * size, static_cast<uint64_t>(i) * size);
  }
}

// A created primitive with its workspace and scratch.
struct Made {
  Primitive primitive;
  Memory workspace, scratch;
};

Result<Made> create(Subject& subject, const Stream& stream, const ep_primitive_desc& desc) {
  if (subject.ops.primitive_create == nullptr) return Status(Code::unsupported, "it has no primitive_create.");
  note_descriptor(descriptor::to_string(desc));
  Made made;
  ep_primitive* primitive = nullptr;
  auto info = with_header<ep_primitive_info>(EP_STRUCT_PRIMITIVE_INFO);
  TENON_RETURN_IF_ERROR(
      subject.call("primitive_create", subject.ops.primitive_create, subject.device, &desc, &primitive, &info));
  made.primitive = Primitive(&subject, primitive);
  if (info.workspace_bytes > 0) {
    TENON_ASSIGN_OR_RETURN(made.workspace, subject.allocate(info.workspace_bytes + workspace_alignment));
  }
  if (info.scratch_bytes > 0) {
    TENON_ASSIGN_OR_RETURN(made.scratch, subject.allocate(info.scratch_bytes));
    const std::vector<uint8_t> zeros(info.scratch_bytes, 0);
    TENON_RETURN_IF_ERROR(subject.upload(stream, made.scratch, 0, zeros));
    TENON_RETURN_IF_ERROR(subject.finish(stream));
  }
  return made;
}

Status submit(Subject& subject, const Stream& stream, const Made& made, const std::vector<ep_buffer>& operands,
              const std::vector<ep_scalar>& scalars) {
  ep_launch launch{};
  launch.operands = operands.data();
  launch.operand_count = static_cast<uint32_t>(operands.size());
  launch.scalars = scalars.data();
  launch.scalar_count = static_cast<uint32_t>(scalars.size());
  launch.workspace = {made.workspace.get(), 0};
  launch.scratch = {made.scratch.get(), 0};
  launch.tag = 1;
  ep_fault fault{};
  return subject.call("primitive_launch", subject.ops.primitive_launch, made.primitive.get(), stream.get(),
                      static_cast<const ep_launch*>(&launch), subject.synchronous() ? &fault : nullptr);
}

}  // namespace

ep_operand_desc in_layout(ep_operand_desc operand, int64_t token) {
  std::fill(std::begin(operand.strides), std::end(operand.strides), 0);
  operand.strides[0] = token;
  operand.alignment = 0;
  operand.flags = EP_OPERAND_FLAG_OPAQUE;
  return operand;
}

ep_operand_desc row_major(ep_operand_desc operand) {
  operand.flags &= ~EP_OPERAND_FLAG_OPAQUE;
  int64_t stride = 1;
  for (int32_t axis = operand.rank; axis-- > 0; stride *= operand.dims[axis]) operand.strides[axis] = stride;
  return operand;
}

Result<ep_layout_info> ask_layout(Subject& subject, const ep_operand_desc& operand) {
  auto info = with_header<ep_layout_info>(EP_STRUCT_LAYOUT_INFO);
  TENON_RETURN_IF_ERROR(subject.call("layout_info", subject.ops.layout_info, subject.device, &operand, &info));
  return info;
}

Result<Memory> make_value(Subject& subject, const ep_operand_desc& operand) {
  TENON_ASSIGN_OR_RETURN(const ep_layout_info info, ask_layout(subject, operand));
  if (info.pool == 0) return subject.allocate(info.bytes);
  ep_memory* memory = nullptr;
  TENON_RETURN_IF_ERROR(
      subject.call("layout_allocate", subject.ops.layout_allocate, subject.device, &operand, &memory));
  return Memory(&subject, memory);
}

ep_primitive_desc conversion(const ep_operand_desc& operand, bool to_layout) {
  ep_primitive_desc desc{};
  desc.kind = EP_PRIMITIVE_copy;
  desc.operand_count = 2;
  desc.operands[to_layout ? 0 : 1] = operand;
  desc.operands[to_layout ? 1 : 0] = row_major(operand);
  desc.operands[0].role = EP_ROLE_DST;
  desc.operands[1].role = EP_ROLE_SRC;
  return desc;
}

Status convert(Subject& subject, const Stream& stream, const ep_primitive_desc& desc, ep_memory* dst, ep_memory* src,
               std::vector<Primitive>* kept, std::vector<Memory>* rooms) {
  TENON_ASSIGN_OR_RETURN(Made made, create(subject, stream, desc));
  const Status launched = submit(subject, stream, made, {{dst, 0}, {src, 0}}, {});
  kept->push_back(std::move(made.primitive));
  rooms->push_back(std::move(made.workspace));
  rooms->push_back(std::move(made.scratch));
  return launched;
}

LayoutWork::LayoutWork(Subject& subject, const cases::Case& test, const ep_primitive_desc& desc, const int64_t* tokens)
    : subject_(subject), test_(test), plain_(desc), desc_(desc), start_(cases::make_image(desc, false)) {
  cases::fill_inputs(test_, plain_, &start_);
  want_ = start_;
  got_ = start_;
  values_.resize(desc.operand_count);
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    if (tokens[i] != 0) desc_.operands[i] = in_layout(desc.operands[i], tokens[i]);
  }
  std::vector<void*> addresses;
  for (uint32_t i = 0; i < desc.operand_count; ++i) addresses.push_back(want_.address(i));
  const Status run = reference::run(plain_, addresses.data(), test_.scalars.data(),
                                    static_cast<uint32_t>(test_.scalars.size()), nullptr);
  if (!run.ok() && run.code() != Code::fault) subject.host.violate(run.with_context("  in the reference"));
}

// Allocates the value of operand `index` and, for an input, converts its elements.
Status LayoutWork::put(const Stream& stream, uint32_t index) {
  Value& value = values_[index];
  const ep_operand_desc& operand = plain_.operands[index];
  TENON_ASSIGN_OR_RETURN(value.memory, make_value(subject_, desc_.operands[index]));
  value.elements.assign(static_cast<size_t>(count_of(operand)) * element_bytes(operand), 0x5c);
  TENON_ASSIGN_OR_RETURN(value.plain, subject_.allocate(value.elements.size()));
  if (!is_output(plain_, index)) {
    const uint8_t* from = start_.bytes.data() + start_.offsets[index];
    for_each_element(operand, [&](uint64_t strided, uint64_t dense) {
      std::memcpy(value.elements.data() + dense, from + strided, element_bytes(operand));
    });
  }
  TENON_RETURN_IF_ERROR(subject_.upload(stream, value.plain, 0, value.elements));
  if (is_output(plain_, index)) return {};
  std::vector<Memory> rooms;
  const Status put = convert(subject_, stream, conversion(desc_.operands[index], true), value.memory.get(),
                             value.plain.get(), &primitives_, &rooms);
  TENON_RETURN_IF_ERROR(subject_.finish(stream));
  return put;
}

// Converts output `index` back to elements in the plain output.
Status LayoutWork::take(const Stream& stream, uint32_t index) {
  Value& value = values_[index];
  const ep_operand_desc& operand = plain_.operands[index];
  std::vector<Memory> rooms;
  const Status taken = convert(subject_, stream, conversion(desc_.operands[index], false), value.plain.get(),
                               value.memory.get(), &primitives_, &rooms);
  TENON_RETURN_IF_ERROR(subject_.finish(stream));
  TENON_RETURN_IF_ERROR(taken);
  TENON_RETURN_IF_ERROR(subject_.download(stream, value.plain, 0, value.elements));
  TENON_RETURN_IF_ERROR(subject_.finish(stream));
  uint8_t* to = got_.bytes.data() + got_.offsets[index];
  for_each_element(operand, [&](uint64_t strided, uint64_t dense) {
    std::memcpy(to + strided, value.elements.data() + dense, element_bytes(operand));
  });
  return {};
}

Status LayoutWork::launch(const Stream& stream) {
  TENON_ASSIGN_OR_RETURN(Made made, create(subject_, stream, desc_));
  std::vector<ep_buffer> operands(desc_.operand_count);
  for (uint32_t i = 0; i < desc_.operand_count; ++i) {
    const bool scalar = (desc_.operands[i].flags & EP_OPERAND_FLAG_SCALAR) != 0;
    if (scalar) continue;
    operands[i] = descriptor::is_opaque(desc_.operands[i]) ? ep_buffer{values_[i].memory.get(), 0}
                                                           : ep_buffer{block_.get(), start_.offsets[i]};
  }
  const Status launched = submit(subject_, stream, made, operands, test_.scalars);
  TENON_RETURN_IF_ERROR(subject_.finish(stream));
  return launched;
}

Status LayoutWork::run(const Stream& stream) {
  TENON_ASSIGN_OR_RETURN(block_, subject_.allocate(start_.bytes.size()));
  TENON_RETURN_IF_ERROR(subject_.upload(stream, block_, 0, start_.bytes));
  for (uint32_t i = 0; i < desc_.operand_count; ++i) {
    if (descriptor::is_opaque(desc_.operands[i])) TENON_RETURN_IF_ERROR(put(stream, i));
  }
  TENON_RETURN_IF_ERROR(launch(stream));
  TENON_RETURN_IF_ERROR(subject_.download(stream, block_, 0, got_.bytes));
  TENON_RETURN_IF_ERROR(subject_.finish(stream));
  for (uint32_t i = 0; i < desc_.operand_count; ++i) {
    if (descriptor::is_opaque(desc_.operands[i]) && is_output(plain_, i)) TENON_RETURN_IF_ERROR(take(stream, i));
  }
  return {};
}

Status LayoutWork::compare() { return cases::compare_images(test_, plain_, start_, subject_.accuracy, got_, want_); }

}  // namespace tenon::conformance
