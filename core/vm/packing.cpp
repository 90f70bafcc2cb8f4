// Packs constant operands.
#include "core/device/process.h"
#include "core/device/trace.h"
#include "core/vm/engine.h"
#include "core/vm/inline.h"

namespace tenon::vm {
namespace {

Status pack_inline(const Primitive& primitive, const Operand& dst, const Operand& src) {
  TENON_RETURN_IF_ERROR(settle_operand(src));
  TENON_RETURN_IF_ERROR(settle_operand(dst));
  const DeviceState* device = primitive.device;
  ep_error* error = nullptr;
  const ep_status code =
      device->ops.primitive_pack(primitive.handle, device->inline_stream, dst.storage->block.at(dst.offset),
                                 src.storage->block.at(src.offset), &error);
  if (code == EP_STATUS_OK) return Status();
  return launch_error(loader::take_error(code, error, {}), kPack.op, {}, device);
}

}  // namespace

Status pack(Primitive* primitive, const Operand& dst, const Operand& src) {
  TENON_RETURN_IF_ERROR(process::usable());
  DeviceState* device = primitive->device;
  const TraceScope trace(kPack.op, device->synchronous ? "launch" : "submit", device);
  if (device->synchronous) return pack_inline(*primitive, dst, src);
  const uint16_t stream = current_stream(device);
  TENON_RETURN_IF_ERROR(check_stream(device, stream));
  const Operand operands[] = {dst, src};
  Request request;
  request.policy = Policy::pack;
  request.stream = &device->queue->stream(stream);
  request.primitive = primitive;
  request.op = &kPack;
  request.operands = operands;
  return submit_and_follow(request, false);
}

}  // namespace tenon::vm
