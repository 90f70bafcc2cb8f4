// The primitives. They compute by the reference, and corrupt results if a rule is to be broken.
#include <unistd.h>

#include <algorithm>
#include <cfenv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "primitives/descriptor/descriptor.h"
#include "primitives/dtype/convert.h"
#include "primitives/dtype/dtype.h"
#include "primitives/reference/reference.h"
#include "primitives/shape/shape.h"
#include "sdk/provider/implementation.h"
#include "tests/fakes/mirror/device.h"
#include "tests/fakes/mirror/layouts.h"

namespace tenon::mirror {
namespace {

using provider::destroy;
using provider::entry;
using provider::fail_text;
using provider::fill;
using provider::make;
using provider::to_ep_string;

constexpr uint64_t workspace_bytes = 100;
constexpr uint64_t scratch_bytes = 64;

ep_status refuse(ep_device* device, ep_error** error, std::string_view why) {
  if (device->breaks("no_sentence")) return EP_STATUS_UNSUPPORTED;
  return fail_text(device->host, error, EP_STATUS_UNSUPPORTED, why);
}

ep_status check(ep_device* device, const ep_primitive_desc* desc, ep_error** error) {
  if (device->breaks("claims_nothing")) return refuse(device, error, "It computes nothing.");
  ep_primitive_desc known = *desc;
  if (device->breaks("guesses")) known.extensions[0] = 0;
  if (const std::string reason = why_not_layouts(device, known); !reason.empty()) return refuse(device, error, reason);
  if (const auto unknown = provider::unknown_parts(plain_primitive(known))) {
    return refuse(device, error, unknown.text());
  }
  const Status status = descriptor::check_descriptor(known);
  return status.ok() ? EP_STATUS_OK : refuse(device, error, status.message());
}

ep_status primitive_support(ep_device* device, const ep_primitive_desc* desc, ep_support_info* out_info,
                            ep_error** error) {
  if (const ep_status status = check(device, desc, error); status != EP_STATUS_OK) {
    if (device->breaks("writes_refusal")) out_info->flags = 0;
    return status;
  }
  ep_support_info info{};
  if (!device->breaks("nameless")) info.implementation = to_ep_string("reference");
  if (device->is("any") || device->breaks("ignores_shapes")) {
    info.flags = EP_SUPPORT_FLAG_ANY_DIMS | EP_SUPPORT_FLAG_ANY_STRIDES;
  }
  const bool keeps = device->is("keeps") || device->breaks("keeps_no_demand");
  if (keeps && desc->precision >= EP_PRECISION_PORTABLE) info.flags |= EP_SUPPORT_FLAG_PRECISION;
  const bool narrows = device->breaks("narrows_too_far") && desc->precision == EP_PRECISION_RELAXED;
  if (narrows || device->breaks("narrows_unasked")) {
    info.flags |= EP_SUPPORT_FLAG_RELAXED;
  }
  if (device->breaks("moody")) info.flags = static_cast<uint64_t>(device->asked++ % 2);
  wish_layouts(device, *desc, info.layouts);
  if (device->breaks("endless_penalty")) info.penalty_bytes = descriptor::greatest_penalty(*desc) + 1;
  if (device->is("bakes")) {
    info.baked_scalars = 0xff;
    std::fill_n(info.alignment, EP_MAX_OPERANDS, 64);
  }
  fill(out_info, info);
  return EP_STATUS_OK;
}

}  // namespace

ep_status stop_if_asked(ep_device* device, ep_error** error) {
  const bool asked = device->host->cancel_requested(device->host) != 0;
  const bool stays = device->cancelled_once && device->breaks("cancel_stays");
  if (!asked && !stays && !device->breaks("cancels_unasked")) return EP_STATUS_OK;
  device->cancelled_once = true;
  if (device->breaks("cancel_leaks")) device->host->allocate(device->host, 64, 8);
  const ep_status status = device->breaks("cancel_unsupported") ? EP_STATUS_UNSUPPORTED : EP_STATUS_CANCELLED;
  return fail_text(device->host, error, status, "The compiler was stopped.");
}

namespace {

uint64_t bytes_of(const ep_operand_desc& operand) {
  int64_t last = 0;
  for (int32_t axis = 0; axis < operand.rank; ++axis) last += (operand.dims[axis] - 1) * operand.strides[axis];
  return static_cast<uint64_t>(dtype_bytes(static_cast<DType>(operand.dtype), last + 1));
}

ep_status primitive_create(ep_device* device, const ep_primitive_desc* desc, ep_primitive** out_primitive,
                           ep_primitive_info* out_info, ep_error** error) {
  if (const ep_status status = check(device, desc, error); status != EP_STATUS_OK) return status;
  if (const ep_status status = stop_if_asked(device, error); status != EP_STATUS_OK) return status;
  ep_primitive_info info{};
  if (!device->breaks("nameless_primitive")) info.implementation = to_ep_string("reference");
  info.workspace_bytes = workspace_bytes;
  info.scratch_bytes = scratch_bytes;
  const bool packs = device->is("packs") && !descriptor::has_any(*desc);
  for (uint32_t i = 0; i < desc->operand_count; ++i) {
    const bool constant = packs && (desc->operands[i].flags & EP_OPERAND_FLAG_CONSTANT) != 0;
    if (!constant && !device->breaks("packs_anything")) continue;
    info.pack_operand = i + 1;
    info.pack_bytes = bytes_of(desc->operands[i]);
  }
  if (device->breaks("leaks_plan") && desc->kind == EP_PRIMITIVE_softmax) device->host->allocate(device->host, 64, 8);
  auto* primitive = make<ep_primitive>(device->host, device->host);
  primitive->device = device;
  primitive->desc = *desc;
  primitive->borrowed = desc;
  primitive->packed = info.pack_operand;
  fill(out_info, info);
  *out_primitive = primitive;
  return EP_STATUS_OK;
}

void primitive_destroy(ep_device* device, ep_primitive* primitive) noexcept {
  if (device->breaks("drops_in_flight") && primitive != nullptr) {
    const std::lock_guard lock(device->mutex);
    for (const auto& held : device->queues) {
      if (const auto queue = held.lock()) queue->pending.clear();
    }
  }
  destroy(primitive);
}

ep_status primitive_pack(ep_primitive* primitive, ep_stream* stream, ep_buffer dst, ep_buffer src, ep_error**) {
  if (stream->recording != nullptr) return EP_STATUS_BUSY;
  const uint64_t size = bytes_of(primitive->desc.operands[primitive->packed - 1]);
  stream->submit([=] {
    for (uint64_t i = 0; i < size; ++i) address_of(dst)[i] = static_cast<char>(~address_of(src)[i]);
  });
  return EP_STATUS_OK;
}

// A launch and copies of everything that it borrowed, kept until it runs.
struct Work {
  ep_device* device;
  ep_primitive_desc desc;
  std::vector<void*> operands;
  std::vector<ep_scalar> scalars;
  std::vector<char> unpacked;
  uint32_t packed;
  char* workspace;
  char* scratch;
  ep_fault fault;
  uint64_t tag;

  void move(const Places& places);
  Status run();
  Status compute();
  Status run_plain();
  Status run_from_static_array();
  void unpack();
  void mistake();
  void mistake_product();
  bool takes_fault() const;
  void spoil();
  void miss_the_end();
  void mix(const std::vector<char>& kept);
};

void Work::move(const Places& places) {
  for (void*& operand : operands) operand = places(static_cast<char*>(operand));
  workspace = places(workspace);
}

void Work::unpack() {
  if (packed == 0) return;
  const auto* bytes = static_cast<const char*>(operands[packed - 1]);
  const uint64_t size = bytes_of(desc.operands[packed - 1]);
  for (uint64_t i = 0; i < size; ++i) unpacked.push_back(static_cast<char>(~bytes[i]));
  operands[packed - 1] = unpacked.data();
}

// The mistakes of a provider that passes strides to a BLAS unchecked.
void Work::mistake_product() {
  for (uint32_t i = 0; i < 3; ++i) {
    ep_operand_desc& operand = desc.operands[i];
    int64_t &row = operand.strides[operand.rank - 2], &column = operand.strides[operand.rank - 1];
    const int64_t rows = operand.dims[operand.rank - 2], columns = operand.dims[operand.rank - 1];
    if (device->breaks("never_padded") && column == 1) row = columns;
    if (device->breaks("never_padded") && row == 1) column = rows;
    if (device->breaks("never_spread") && row > 1 && column > 1) column = 1;
    if (device->breaks("never_repeated") && row == 0 && column == 1) row = columns;
    if (device->breaks("dst_by_rows") && i == 0) column = 1, row = columns;
  }
}

// The mistakes of a provider that misreads its descriptor.
void Work::mistake() {
  if (desc.kind == EP_PRIMITIVE_matmul) mistake_product();
  ep_operand_desc& dst = desc.operands[0];
  if (device->breaks("dense_dst") && desc.kind == EP_PRIMITIVE_binary && dst.rank == 1) dst.strides[0] = 1;
  const int32_t bias = descriptor::operand_index(desc, EP_ROLE_BIAS);
  if (device->breaks("dense_bias") && bias >= 0) {
    ep_operand_desc& operand = desc.operands[bias];
    int64_t& last = operand.strides[operand.rank - 1];
    if (last > 1) last = 1;
  }
  if (device->breaks("one_scale")) {
    const int32_t scale = descriptor::operand_index(desc, EP_ROLE_WEIGHT_SCALE);
    if (scale >= 0) std::fill_n(desc.operands[scale].strides, EP_MAX_RANK, 0);
  }
  const bool normalises = desc.kind == EP_PRIMITIVE_layer_norm || desc.kind == EP_PRIMITIVE_batch_norm;
  if (normalises && device->is("wrong_epsilon") && !scalars.empty()) scalars[0].value.f64 = 0.5;
  for (uint32_t i = 0; i < desc.operand_count; ++i) {
    ep_operand_desc& operand = desc.operands[i];
    if (device->breaks("stride") && operand.rank > 0) {
      const Dims strides = contiguous_strides(Dims({operand.dims, static_cast<size_t>(operand.rank)}));
      std::copy(strides.begin(), strides.end(), operand.strides);
    }
    if (device->breaks("dtype") && operand.dtype == EP_DTYPE_f16) operand.dtype = EP_DTYPE_bf16;
    if (device->breaks("offset") && operands[i] != nullptr) {
      operands[i] = reinterpret_cast<void*>(reinterpret_cast<uintptr_t>(operands[i]) / 16 * 16);
    }
  }
}

Status Work::compute() {
  const auto run = [&](void* const* at) {
    return reference::run(desc, at, scalars.data(), static_cast<uint32_t>(scalars.size()), &fault);
  };
  const bool kept = device->is("keeps") && desc.precision == EP_PRECISION_FULL;
  const bool flushes = (device->is("flushes") && !kept) || device->breaks("flushes_unsaid");
  return flushes ? run_flushed(desc, operands, run) : run(operands.data());
}

Status Work::run() {
  if (std::any_of(scratch, scratch + scratch_bytes, [](char byte) { return byte != 0; })) {
    return Status(Code::internal, "The scratch is not zero.");
  }
  unpack();
  mistake();
  std::vector<char> kept;
  const uint64_t size = bytes_of(desc.operands[0]);
  auto* dst = static_cast<char*>(operands[0]);
  kept.assign(dst, dst + size);
  const Status status = compute();
  fault.tag = device->breaks("wrong_tag") ? 0 : device->breaks("narrow_tag") ? static_cast<uint32_t>(tag) : tag;
  if (device->breaks("next_tag")) ++fault.tag;
  if (device->breaks("last_element")) {
    const auto unit =
        static_cast<uint64_t>(std::max<int64_t>(1, dtype_size(static_cast<DType>(desc.operands[0].dtype))));
    std::memcpy(dst + size - unit, kept.data() + size - unit, unit);
  }
  mix(kept);
  const bool keeps = device->is("keeps") && desc.precision >= EP_PRECISION_PORTABLE;
  if (status.ok() && !keeps) move_outputs(device->character.off, desc, operands.data());
  spoil();
  if (takes_fault()) return {};
  return device->breaks("no_fault") && status.code() == Code::fault ? Status() : status;
}

// Runs with row-major operands in place of the opaque ones.
Status Work::run_plain() {
  if (!descriptor::has_opaque(desc)) return run();
  const ep_primitive_desc given = desc;
  PlainOperands plain(device, given);
  plain.unpack(operands.data());
  desc = plain_primitive(given);
  const Status status = run();
  plain.pack();
  return status;
}

// True if the mirror must ignore this fault of an index one step beyond its axis.
bool Work::takes_fault() const {
  if (fault.code != EP_FAULT_INDEX_OUT_OF_RANGE) return false;
  if (device->breaks("one_index_more")) return fault.value == fault.limit;
  return device->breaks("one_index_less") && fault.value == -fault.limit - 1;
}

// Adds the earlier content of the output to the result.
void Work::mix(const std::vector<char>& kept) {
  const bool adds = device->breaks("accumulates") && desc.kind == EP_PRIMITIVE_matmul;
  const bool compares = device->breaks("keeps_greater") && desc.kind == EP_PRIMITIVE_unary;
  if ((!adds && !compares) || desc.operands[0].dtype != EP_DTYPE_f32) return;
  for (size_t at = 0; at < kept.size(); at += sizeof(float)) {
    float before = 0, result = 0;
    char* place = static_cast<char*>(operands[0]) + at;
    std::memcpy(&before, kept.data() + at, sizeof before);
    std::memcpy(&result, place, sizeof result);
    result = adds ? result + before : std::fmax(result, before);
    std::memcpy(place, &result, sizeof result);
  }
}

// A kernel whose threads share a static array for the source.
Status Work::run_from_static_array() {
  static std::mutex mutex;
  static std::vector<char> array;
  const auto* src = static_cast<const char*>(operands[1]);
  {
    const std::lock_guard lock(mutex);
    array.assign(src, src + bytes_of(desc.operands[1]));
  }
  usleep(3000);
  {
    const std::lock_guard lock(mutex);
    unpacked = array;
  }
  operands[1] = unpacked.data();
  return run();
}

// Moves results of tanh and erf for -inf and for all large numbers one step away from their limit.
void Work::miss_the_end() {
  const int step = device->breaks("beyond_one") ? 1 : device->breaks("short_of_one") ? -1 : 0;
  const bool ends = desc.kind == EP_PRIMITIVE_unary &&
                    (desc.attributes.unary.op == EP_UNARY_tanh || desc.attributes.unary.op == EP_UNARY_erf);
  if (step == 0 || !ends) return;
  const auto dtype = static_cast<DType>(desc.operands[0].dtype);
  const auto unit = static_cast<uint64_t>(dtype_size(dtype));
  for (uint64_t at = 0; at < bytes_of(desc.operands[0]); at += unit) {
    uint64_t bits = 0;
    char* place = static_cast<char*>(operands[0]) + at;
    std::memcpy(&bits, place, unit);
    if (std::fabs(decode_float(dtype, bits)) != 1) continue;
    bits += static_cast<uint64_t>(step);
    std::memcpy(place, &bits, unit);
  }
}

void Work::spoil() {
  miss_the_end();
  auto* first = static_cast<char*>(operands[0]);
  auto* last = static_cast<char*>(operands[desc.operand_count - 1]);
  const uint64_t size = bytes_of(desc.operands[0]);
  // Moves exp as far as tier portable allows, or one step beyond.
  if (device->breaks("beyond_portable")) move_outputs(Off::parse("beyond,5,0,1,0,4,2,0,1"), desc, operands.data());
  if (device->breaks("narrows_too_far") && desc.precision == EP_PRECISION_RELAXED) {
    move_outputs(Off::parse("beyond,5,0,1,0,8192,0,0,1"), desc, operands.data());
  }
  if (device->breaks("keeps_no_demand")) move_outputs(Off::parse("within,5,0,1,0,4,2,0,1"), desc, operands.data());
  if (device->breaks("wrong_value")) first[0] = static_cast<char>(first[0] ^ 0x40);
  if (device->breaks("past_end")) first[size] = 1;
  if (device->breaks("writes_input") && last != nullptr) last[0] = static_cast<char>(last[0] ^ 1);
  if (device->breaks("dirty_scratch")) scratch[3] = 1;
  if (device->breaks("other_fault")) fault.operand = 0;
  if (device->breaks("other_value")) fault.value = std::numeric_limits<int32_t>::min();
  if (device->breaks("value_in_range")) fault.value = 0;
  if (device->breaks("no_limit")) fault.limit = 0;
  if (device->breaks("dirty_workspace") && workspace[7] != 0) first[1] = static_cast<char>(first[1] ^ 0x21);
  if (device->breaks("random_bits")) first[0] = static_cast<char>(++device->asked);
  if (device->breaks("nan") && desc.operands[0].dtype == EP_DTYPE_f32) {
    for (uint64_t i = 0; i < size / 4; ++i) {
      float value = 0;
      std::memcpy(&value, first + 4 * i, 4);
      if (!std::isnan(value)) continue;
      value = 0;
      std::memcpy(first + 4 * i, &value, 4);
    }
  }
  std::memset(workspace, 0x77, workspace_bytes);
}

Work work_of(const ep_primitive& primitive, const ep_launch& launch) {
  Work work = {primitive.device,
               primitive.desc,
               {},
               {},
               {},
               primitive.packed,
               address_of(launch.workspace),
               address_of(launch.scratch),
               {},
               launch.tag};
  if (work.device->breaks("keeps_desc")) work.desc = *primitive.borrowed;
  for (uint32_t i = 0; i < launch.operand_count; ++i) {
    work.operands.push_back(address_of(launch.operands[i]));
    if (launch.shapes == nullptr) continue;
    ep_operand_desc& operand = work.desc.operands[i];
    std::copy_n(launch.shapes[i].dims, operand.rank, operand.dims);
    std::copy_n(launch.shapes[i].strides, operand.rank, operand.strides);
    if (work.device->breaks("ignores_shapes") && operand.dims[0] > 1) --operand.dims[0];
  }
  work.scalars.assign(launch.scalars, launch.scalars + launch.scalar_count);
  return work;
}

// Sets the arguments of the primitive, and reads them again to enqueue them, as with an OpenCL kernel, without one lock
// around both.
Work set_and_take(ep_primitive* primitive, Work work) {
  {
    const std::lock_guard lock(primitive->device->mutex);
    primitive->arguments = std::make_shared<Work>(std::move(work));
  }
  usleep(300);
  const std::lock_guard lock(primitive->device->mutex);
  return *std::static_pointer_cast<Work>(primitive->arguments);
}

ep_status primitive_launch(ep_primitive* primitive, ep_stream* stream, const ep_launch* launch, ep_fault* out_fault,
                           ep_error** error) {
  ep_device* device = primitive->device;
  if (device->breaks("crashes")) *static_cast<volatile char*>(nullptr) = 0;
  if (device->breaks("exits")) std::_Exit(0);
  if (device->breaks("leaves_rounding")) std::fesetround(FE_TOWARDZERO);
  if (device->breaks("lies")) return refuse(device, error, "On second thoughts, no.");
  Work work = work_of(*primitive, *launch);
  if (device->breaks("unlocked_arguments")) work = set_and_take(primitive, std::move(work));
  if (device->breaks("keeps_desc") && work.desc.operand_count > EP_MAX_OPERANDS) {
    return fail_text(device->host, error, EP_STATUS_INTERNAL, "The descriptor is gone.");
  }
  if (device->breaks("shares_staging")) {
    stream->finish();
    device->staged = work.operands;
  }
  if (device->breaks("prints_in_kernel") && work.desc.kind == EP_PRIMITIVE_matmul) std::printf("gemm\n");
  if (device->breaks("static_array") && work.desc.kind == EP_PRIMITIVE_softmax) {
    stream->finish();
    return static_cast<ep_status>(work.run_from_static_array().code());
  }
  if (stream->recording != nullptr) {
    stream->recording->calls.push_back([work](const Places& places, std::vector<ep_fault>* faults) {
      Work now = work;
      now.move(places);
      if (!now.run_plain().ok()) faults->push_back(now.fault);
    });
    return EP_STATUS_OK;
  }
  ep_status status = EP_STATUS_OK;
  const bool waits = !device->is("async");
  if (device->breaks("launch_answers_fault")) {
    stream->finish();
    return static_cast<ep_status>(work.run().code());
  }
  stream->submit([=, queue = stream->queue, work = std::move(work), &status]() mutable {
    if (device->breaks("shares_staging")) work.operands = device->staged;
    const Status ran = work.run_plain();
    if (ran.ok()) return;
    if (waits) {
      if (out_fault != nullptr) *out_fault = work.fault;
      status = fail_text(device->host, error, static_cast<ep_status>(ran.code()), ran.message());
    } else {
      const bool keeps = !device->breaks("one_fault_alone") || queue->faults.empty();
      if (device->breaks("newest_fault_first")) {
        queue->faults.push_front(work.fault);
      } else if (keeps) {
        queue->faults.push_back(work.fault);
      }
    }
  });
  return status;
}

}  // namespace

void fill_primitive(ep_device_ops* ops) {
  ops->primitive_support = entry<primitive_support>;
  ops->primitive_create = entry<primitive_create>;
  ops->primitive_destroy = primitive_destroy;
  ops->primitive_launch = entry<primitive_launch>;
  ops->primitive_pack = entry<primitive_pack>;
}

}  // namespace tenon::mirror
