#include "sdk/conformance/primitive/work.h"

#include <algorithm>
#include <cstring>

#include "primitives/descriptor/descriptor.h"
#include "primitives/text/format.h"

namespace tenon::conformance {
namespace {

constexpr uint64_t workspace_alignment = 256;

std::vector<ep_shape> shapes_of(const ep_primitive_desc& fixed) {
  std::vector<ep_shape> shapes;
  for (uint32_t i = 0; i < fixed.operand_count; ++i) {
    const ep_operand_desc& operand = fixed.operands[i];
    shapes.push_back({operand.dims, operand.strides, operand.rank, 0});
  }
  return shapes;
}

// Overwrites an argument that a call borrowed. The provider must have copied it if it still needs it.
template <class T>
void spoil(std::vector<T>* values) {
  if (!values->empty()) std::memset(static_cast<void*>(values->data()), 0xee, values->size() * sizeof(T));
}

}  // namespace

Work::Work(Subject& subject, const ep_primitive_desc& desc, const ep_primitive_desc& fixed,
           std::vector<ep_scalar> scalars, cases::Image image)
    : subject_(subject),
      desc_(desc),
      fixed_(fixed),
      lent_desc_(desc),
      scalars_(std::move(scalars)),
      image_(std::move(image)),
      dynamic_(descriptor::has_any(desc)) {}

Status Work::create() {
  if (subject_.ops.primitive_create == nullptr) return Status(Code::unsupported, "it has no primitive_create.");
  note_descriptor(descriptor::to_string(desc_));
  ep_primitive* primitive = nullptr;
  info_ = with_header<ep_primitive_info>(EP_STRUCT_PRIMITIVE_INFO);
  const Status made = subject_.call("primitive_create", subject_.ops.primitive_create, subject_.device,
                                    static_cast<const ep_primitive_desc*>(&lent_desc_), &primitive, &info_);
  if (spoils) std::memset(static_cast<void*>(&lent_desc_), 0xee, sizeof lent_desc_);
  if (!made.ok()) return made;
  primitive_ = Primitive(&subject_, primitive);
  launched_ = primitive;
  if (info_.implementation.size == 0) {
    return broken("P17", "primitive_create answers 'ok' and names no implementation");
  }
  return allocate();
}

Status Work::share(const Work& maker) {
  info_ = maker.info_;
  launched_ = maker.launched_;
  return allocate();
}

Status Work::allocate() {
  workspace_bytes_ = info_.workspace_bytes;
  if (dynamic_ && subject_.ops.primitive_workspace != nullptr) {
    const std::vector<ep_shape> shapes = shapes_of(fixed_);
    TENON_RETURN_IF_ERROR(subject_.call("primitive_workspace", subject_.ops.primitive_workspace, launched_,
                                        shapes.data(), fixed_.operand_count, &workspace_bytes_));
  }
  TENON_RETURN_IF_ERROR(allocate_blocks());
  if (workspace_bytes_ > 0) {
    TENON_ASSIGN_OR_RETURN(workspace_, subject_.allocate(workspace_bytes_ + workspace_alignment));
  }
  if (info_.scratch_bytes > 0) {
    TENON_ASSIGN_OR_RETURN(scratch_, subject_.allocate(info_.scratch_bytes));
  }
  if (info_.pack_operand > 0) {
    if (subject_.ops.primitive_pack == nullptr || info_.pack_operand > desc_.operand_count ||
        (desc_.operands[info_.pack_operand - 1].flags & EP_OPERAND_FLAG_CONSTANT) == 0) {
      return broken("P11",
                    "primitive_create wants operand {} packed, which is not constant, or there is no primitive_pack",
                    info_.pack_operand - 1);
    }
    TENON_ASSIGN_OR_RETURN(packed_, subject_.allocate(info_.pack_bytes));
  }
  return {};
}

Status Work::allocate_blocks() {
  blocks_.clear();
  block_of_.assign(fixed_.operand_count, 0);
  std::vector<uint64_t> places;
  for (uint32_t i = 0; i < fixed_.operand_count; ++i) {
    if ((fixed_.operands[i].flags & EP_OPERAND_FLAG_SCALAR) != 0) continue;
    const auto known = std::find(places.begin(), places.end(), image_.offsets[i]);
    block_of_[i] = subject_.exclusive() ? static_cast<size_t>(known - places.begin()) : 0;
    if (known == places.end()) places.push_back(image_.offsets[i]);
  }
  for (size_t i = 0; i < (subject_.exclusive() ? std::max<size_t>(1, places.size()) : 1); ++i) {
    TENON_ASSIGN_OR_RETURN(Memory block, subject_.allocate(image_.bytes.size()));
    blocks_.push_back(std::move(block));
  }
  return {};
}

// Copies the bytes written in the other blocks into the image.
void Work::merge() {
  for (const std::vector<uint8_t>& bytes : fetched_) {
    for (size_t i = 0; i < bytes.size(); ++i) {
      if (bytes[i] != uploaded_[i]) image_.bytes[i] = bytes[i];
    }
  }
  fetched_.clear();
}

Status Work::submit(const Stream& stream) {
  TENON_RETURN_IF_ERROR(upload(stream));
  if (waits) TENON_RETURN_IF_ERROR(subject_.finish(stream));
  TENON_RETURN_IF_ERROR(launch(stream));
  if (waits) TENON_RETURN_IF_ERROR(subject_.finish(stream));
  return download(stream);
}

Status Work::upload(const Stream& stream) {
  for (const Memory& block : blocks_) TENON_RETURN_IF_ERROR(subject_.upload(stream, block, 0, image_.bytes));
  if (workspace_.get() != nullptr) {
    dirty_.assign(workspace_bytes_ + workspace_alignment, dirt);
    TENON_RETURN_IF_ERROR(subject_.upload(stream, workspace_, 0, dirty_));
  }
  if (scratch_.get() != nullptr) {
    scratch_bytes_.assign(info_.scratch_bytes, 0);
    TENON_RETURN_IF_ERROR(subject_.upload(stream, scratch_, 0, scratch_bytes_));
  }
  return pack(stream);
}

Status Work::pack(const Stream& stream) {
  if (info_.pack_operand == 0) return {};
  return subject_.call("primitive_pack", subject_.ops.primitive_pack, launched_, stream.get(),
                       ep_buffer{packed_.get(), 0}, operand(info_.pack_operand - 1));
}

Status Work::download(const Stream& stream) {
  fetched_.assign(blocks_.size() - 1, {});
  if (!fetched_.empty()) uploaded_ = image_.bytes;
  for (size_t i = 1; i < blocks_.size(); ++i) {
    fetched_[i - 1].resize(image_.bytes.size());
    TENON_RETURN_IF_ERROR(subject_.download(stream, blocks_[i], 0, fetched_[i - 1]));
  }
  TENON_RETURN_IF_ERROR(subject_.download(stream, blocks_[0], 0, image_.bytes));
  if (scratch_.get() == nullptr) return {};
  return subject_.download(stream, scratch_, 0, scratch_bytes_);
}

Status Work::launch(const Stream& stream) {
  std::vector<ep_buffer>& buffers = lent_buffers_;
  buffers.assign(desc_.operand_count, {});
  for (uint32_t i = 0; i < desc_.operand_count; ++i) {
    if ((desc_.operands[i].flags & EP_OPERAND_FLAG_SCALAR) == 0) buffers[i] = operand(i);
  }
  if (info_.pack_operand > 0) buffers[info_.pack_operand - 1] = {packed_.get(), 0};
  lent_shapes_ = shapes_of(fixed_);
  lent_scalars_ = scalars_;
  ep_launch launch{};
  launch.operands = buffers.data();
  launch.shapes = dynamic_ ? lent_shapes_.data() : nullptr;
  launch.scalars = lent_scalars_.data();
  launch.operand_count = desc_.operand_count;
  launch.scalar_count = static_cast<uint32_t>(lent_scalars_.size());
  launch.workspace = {workspace_.get(), 0};
  launch.scratch = {scratch_.get(), 0};
  launch.tag = tag;
  note_descriptor(descriptor::to_string(desc_));
  ep_fault fault{};
  const Status launched =
      subject_.call("primitive_launch", subject_.ops.primitive_launch, launched_, stream.get(),
                    static_cast<const ep_launch*>(&launch), subject_.synchronous() ? &fault : nullptr);
  if (spoils) {
    spoil(&lent_buffers_);
    spoil(&lent_shapes_);
    spoil(&lent_scalars_);
  }
  if (launched.code() == Code::unsupported) {
    return broken("P03", "support and create succeeded, but primitive_launch answers 'unsupported': {}",
                  without_rule(launched).message());
  }
  if (launched.code() != Code::fault) return launched;
  if (!subject_.synchronous()) {
    return broken("P07", "an asynchronous device answered a launch with a fault; it must queue it");
  }
  faults_.push_back(fault);
  return {};
}

Status Work::settle(const Stream& stream) {
  if (!subject_.synchronous()) TENON_RETURN_IF_ERROR(take_faults(subject_, stream, &faults_));
  if (faults_.empty() && std::any_of(scratch_bytes_.begin(), scratch_bytes_.end(), [](uint8_t b) { return b != 0; })) {
    return broken("P09", "the launch did not leave its scratch zero");
  }
  return {};
}

Status take_faults(Subject& subject, const Stream& stream, std::vector<ep_fault>* faults) {
  if (subject.ops.stream_take_fault == nullptr) return {};
  constexpr size_t most_faults = 100000;
  while (faults->size() < most_faults) {
    ep_fault fault{};
    const Status taken = subject.call("stream_take_fault", subject.ops.stream_take_fault, stream.get(), &fault);
    if (taken.code() == Code::not_found) return {};
    TENON_RETURN_IF_ERROR(taken);
    faults->push_back(fault);
  }
  return broken("P07", "stream_take_fault has handed out {} faults and has more", most_faults);
}

}  // namespace tenon::conformance
