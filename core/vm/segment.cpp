#include "core/vm/segment.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/device/trace.h"
#include "core/vm/engine.h"
#include "core/vm/inline.h"
#include "primitives/text/format.h"

namespace tenon::vm {

Status Constants::poison() const {
  if (settled_.load(std::memory_order_relaxed)) return Status();
  for (const StorageOwner& storage : storages_) {
    if (!storage.get()->poison.ok()) return storage.get()->poison;
  }
  return Status();
}

Status Constants::settle() {
  if (settled_.load(std::memory_order_acquire)) return Status();
  for (const StorageOwner& storage : storages_) {
    TENON_RETURN_IF_ERROR(vm::settle(storage.get(), false, false));
  }
  settled_.store(true, std::memory_order_release);
  return Status();
}

Segment::~Segment() {
  for (const PackedLaunch& launch : launches_) {
    if (launch.primitive != nullptr) launch.primitive->release();
  }
}

SegmentBuilder::SegmentBuilder(DeviceState* device, uint32_t bindings, std::shared_ptr<Constants> constants)
    : segment_(new Segment) {
  segment_->device_ = device;
  segment_->bindings_ = bindings;
  segment_->constants_ = std::move(constants);
  if (segment_->constants_ != nullptr) {
    for (const StorageOwner& storage : segment_->constants_->storages()) {
      segment_->constant_addresses_.push_back(storage.get()->block.at(0));
    }
  }
  segment_->constant_addresses_.push_back({});
}

Status SegmentBuilder::check(const NodeName& name, const SegmentAddress& address) const {
  const bool constant = address.of == SegmentAddress::Of::constant;
  const size_t count = constant ? segment_->constant_addresses_.size() - 1 : segment_->bindings_;
  if (address.of == SegmentAddress::Of::nothing || address.index < count) return Status();
  return Status(Code::invalid_argument,
                fmt::format("A launch of {} has an operand in {} {}, but the segment has {}.", name.op.op,
                            constant ? "constant" : "binding", address.index, count));
}

const ep_shape* SegmentBuilder::keep_shapes(const SegmentLaunch& launch) {
  if (launch.shapes == nullptr) return nullptr;
  std::vector<int64_t> words;
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    const ep_shape& shape = launch.shapes[i];
    words.push_back(shape.rank);
    words.insert(words.end(), shape.dims, shape.dims + shape.rank);
    words.insert(words.end(), shape.strides, shape.strides + shape.rank);
  }
  const auto [at, fresh] = segment_->shapes_.try_emplace(std::move(words));
  if (!fresh) return at->second.data();
  const int64_t* next = at->first.data();
  for (size_t i = 0; i < launch.operands.size(); ++i) {
    const auto rank = static_cast<int32_t>(*next++);
    at->second.push_back({next, next + rank, rank, 0});
    next += 2 * rank;
  }
  return at->second.data();
}

void SegmentBuilder::pack(const SegmentAddress& address) {
  const auto no_memory = static_cast<uint32_t>(segment_->constant_addresses_.size() - 1);
  switch (address.of) {
    case SegmentAddress::Of::nothing: return segment_->addresses_.push_back({1, no_memory, 0});
    case SegmentAddress::Of::binding: return segment_->addresses_.push_back({0, address.index, address.offset});
    case SegmentAddress::Of::constant: return segment_->addresses_.push_back({1, address.index, address.offset});
  }
}

Status SegmentBuilder::check_device(const NodeName& name, const DeviceState* device) const {
  if (device == segment_->device_) return Status();
  return Status(Code::invalid_argument, fmt::format("A launch of {} is for {}, but the segment is for {}.", name.op.op,
                                                    device->opened->spelling, segment_->device_->opened->spelling));
}

Status SegmentBuilder::add(const SegmentLaunch& launch) {
  TENON_RETURN_IF_ERROR(check_device(*launch.name, launch.primitive->device));
  for (const SegmentAddress& address : launch.operands) TENON_RETURN_IF_ERROR(check(*launch.name, address));
  TENON_RETURN_IF_ERROR(check(*launch.name, launch.workspace));
  PackedLaunch packed;
  packed.primitive = launch.primitive;
  packed.primitive->retain();
  packed.shapes = keep_shapes(launch);
  packed.operand_count = static_cast<uint16_t>(launch.operands.size());
  packed.scalar_count = static_cast<uint16_t>(launch.scalars.size());
  packed.wants_scratch = launch.primitive->scratch_bytes != 0;
  positions_.push_back({segment_->addresses_.size(), segment_->scalars_.size()});
  for (const SegmentAddress& address : launch.operands) pack(address);
  pack(launch.workspace);
  segment_->scalars_.insert(segment_->scalars_.end(), launch.scalars.begin(), launch.scalars.end());
  segment_->scratch_bytes_ = std::max(segment_->scratch_bytes_, launch.primitive->scratch_bytes);
  segment_->launches_.push_back(packed);
  segment_->names_.push_back(*launch.name);
  return Status();
}

Status SegmentBuilder::check_kernel(const SegmentKernelLaunch& launch) const {
  TENON_RETURN_IF_ERROR(check_device(*launch.name, launch.module->device));
  const CompiledKernel& kernel = launch.module->kernels[launch.kernel];
  const KernelEntry& entry = kernel.entry;
  const bool fits = launch.buffers.size() == entry.buffer_count && launch.parameters.size() == entry.parameter_bytes;
  const bool works =
      (launch.workspace.of != SegmentAddress::Of::nothing) == ((entry.flags & EP_ENTRY_FLAG_WORKSPACE) != 0);
  const bool scratches = (launch.scratch_bytes != 0) == ((entry.flags & EP_ENTRY_FLAG_SCRATCH) != 0);
  const bool groups = launch.groups[0] != 0 && launch.groups[1] != 0 && launch.groups[2] != 0;
  if (fits && works && scratches && groups) return Status();
  return Status(
      Code::invalid_argument,
      fmt::format("A launch of the kernel {} gives {} buffers, {} bytes of parameters, {} workspace, {} bytes of "
                  "scratch and {} x {} x {} groups; the entry has {} buffers, {} bytes of parameters and the "
                  "flags 0x{:x}.",
                  entry.name, launch.buffers.size(), launch.parameters.size(),
                  launch.workspace.of != SegmentAddress::Of::nothing ? "a" : "no", launch.scratch_bytes,
                  launch.groups[0], launch.groups[1], launch.groups[2], entry.buffer_count, entry.parameter_bytes,
                  entry.flags));
}

Status SegmentBuilder::add(const SegmentKernelLaunch& launch) {
  TENON_RETURN_IF_ERROR(check_kernel(launch));
  for (const SegmentAddress& address : launch.buffers) TENON_RETURN_IF_ERROR(check(*launch.name, address));
  TENON_RETURN_IF_ERROR(check(*launch.name, launch.workspace));
  PackedLaunch packed;
  packed.compiled = &segment_->compiled_.emplace_back(PackedKernel{launch.module,
                                                                   &launch.module->kernels[launch.kernel],
                                                                   {launch.parameters.begin(), launch.parameters.end()},
                                                                   launch.groups});
  packed.operand_count = static_cast<uint16_t>(launch.buffers.size());
  packed.wants_scratch = launch.scratch_bytes != 0;
  positions_.push_back({segment_->addresses_.size(), segment_->scalars_.size()});
  for (const SegmentAddress& address : launch.buffers) pack(address);
  pack(launch.workspace);
  segment_->scratch_bytes_ = std::max(segment_->scratch_bytes_, launch.scratch_bytes);
  segment_->launches_.push_back(packed);
  segment_->names_.push_back(*launch.name);
  return Status();
}

std::shared_ptr<const Segment> SegmentBuilder::finish() {
  for (size_t i = 0; i < positions_.size(); ++i) {
    PackedLaunch& launch = segment_->launches_[i];
    launch.operands = segment_->addresses_.data() + positions_[i].operands;
    launch.scalars = segment_->scalars_.data() + positions_[i].scalars;
  }
  positions_.clear();
  return std::exchange(segment_, nullptr);
}

namespace {

// The addresses of the operands of one run.
class Addresses {
 public:
  Addresses(const Segment& segment, const ep_buffer* bindings) : tables_{bindings, segment.constant_addresses()} {}
  ep_buffer operator()(const PackedAddress& address) const {
    const ep_buffer& begin = tables_[address.constant][address.index];
    return {begin.memory, begin.offset + address.offset};
  }

 private:
  const ep_buffer* tables_[2];
};

// Launches a kernel that the device compiled.
ep_status launch_compiled(const PackedLaunch& launch, const Addresses& address, const SegmentCall& call, uint64_t tag,
                          SegmentEnd* end) {
  const PackedKernel& compiled = *launch.compiled;
  constexpr uint32_t kFew = 32;
  std::array<ep_buffer, kFew> few;
  std::vector<ep_buffer> many(launch.operand_count > kFew ? launch.operand_count : 0);
  ep_buffer* buffers = many.empty() ? few.data() : many.data();
  for (uint32_t i = 0; i < launch.operand_count; ++i) buffers[i] = address(launch.operands[i]);
  ep_kernel_launch request{};
  request.buffers = buffers;
  request.parameters = compiled.parameters.data();
  std::copy(compiled.groups.begin(), compiled.groups.end(), request.groups);
  request.buffer_count = launch.operand_count;
  request.parameter_bytes = static_cast<uint32_t>(compiled.parameters.size());
  request.workspace = address(launch.operands[launch.operand_count]);
  request.scratch = launch.wants_scratch ? call.scratch : ep_buffer{};
  request.tag = tag;
  return compiled.module->device->ops.kernel_launch(compiled.kernel->handle, call.stream, &request, &end->fault,
                                                    &end->error);
}

bool any_cancelled(std::span<const Cancellation> all) {
  return std::any_of(all.begin(), all.end(), [](const Cancellation& one) { return one.cancelled(); });
}

void trace_launch(const Segment& segment, uint32_t launch, uint64_t begin) {
  const uint64_t end = trace_now();
  const NodeName& name = segment.name(launch);
  const std::string& where = segment.device()->opened->spelling;
  trace_thread_span(name.op.op, "launch", begin, end,
                    name.label.empty() ? where : fmt::format("{}, {}", where, name.label));
}

}  // namespace

SegmentEnd launch_all(const Segment& segment, const SegmentCall& call) {
  SegmentEnd end;
  const auto launch_one = segment.device()->ops.primitive_launch;
  const Addresses address(segment, call.bindings);
  const bool stoppable = !call.cancellations.empty();
  const bool traced = tracing();
  ep_buffer buffers[EP_MAX_OPERANDS];
  ep_launch request{};
  request.operands = buffers;
  uint64_t tag = call.first_tag;
  for (const PackedLaunch& launch : segment.launches()) {
    if (stoppable && any_cancelled(call.cancellations)) [[unlikely]] {
      end.cancelled = true;
      break;
    }
    const uint64_t begin = traced ? trace_now() : 0;
    if (launch.compiled != nullptr) {
      end.code = launch_compiled(launch, address, call, tag++, &end);
    } else {
      const uint32_t count = launch.operand_count;
      for (uint32_t i = 0; i < count; ++i) buffers[i] = address(launch.operands[i]);
      request.shapes = launch.shapes;
      request.scalars = launch.scalars;
      request.operand_count = count;
      request.scalar_count = launch.scalar_count;
      request.workspace = address(launch.operands[count]);
      request.scratch = launch.wants_scratch ? call.scratch : ep_buffer{};
      request.tag = tag++;
      end.code = launch_one(launch.primitive->handle, call.stream, &request, &end.fault, &end.error);
    }
    if (traced) [[unlikely]]
      trace_launch(segment, end.launched, begin);
    if (end.code != EP_STATUS_OK) [[unlikely]]
      break;
    ++end.launched;
  }
  return end;
}

Status segment_error(const Segment& segment, const SegmentEnd& end) {
  const NodeName& node = segment.name(end.launched);
  const DeviceState* device = segment.device();
  if (end.cancelled) {
    const Status cause(Code::cancelled, fmt::format("The program cancelled this run before launch {} of {}.",
                                                    end.launched + 1, segment.launches().size()));
    return node_error(node, cause, device);
  }
  const Status cause = loader::take_error(end.code, end.error, {});
  return end.code == EP_STATUS_FAULT ? node_fault(node, end.fault, device) : node_error(node, cause, device);
}

}  // namespace tenon::vm
