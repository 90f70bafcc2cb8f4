#include "core/vm/host_worker.h"

#include <mutex>
#include <utility>
#include <vector>

#include "core/device/process.h"
#include "core/vm/engine.h"

namespace tenon::vm {
namespace {

// Workers without an owner.
struct Idle {
  std::mutex mutex;
  std::vector<HostWorker*> workers;
};

Idle& idle() {
  static auto* one = new Idle;
  return *one;
}

}  // namespace

HostWorker::HostWorker(DeviceState* device) : queue_(new DeviceQueue(device)) { queue_->beside = true; }

Result<HostWorker*> HostWorker::take(DeviceState* device) {
  TENON_RETURN_IF_ERROR(process::usable());
  {
    const std::lock_guard lock(idle().mutex);
    if (!idle().workers.empty()) {
      HostWorker* worker = idle().workers.back();
      idle().workers.pop_back();
      return worker;
    }
  }
  begin_life();
  auto* worker = new HostWorker(device);
  TENON_ASSIGN_OR_RETURN(worker->stream_, worker->queue_->host_stream());
  const std::lock_guard lock(engine().submission);
  engine().queues.push_back(worker->queue_);
  return worker;
}

void HostWorker::give_back() {
  if (!wait().ok()) return;
  const std::lock_guard lock(idle().mutex);
  idle().workers.push_back(this);
}

Status HostWorker::submit(const OpName& op, std::span<const Operand> operands, std::function<void()> function) {
  TENON_RETURN_IF_ERROR(process::usable());
  Request request;
  request.policy = Policy::access;
  request.stream = stream_;
  request.op = &op;
  request.operands = operands;
  request.work = new HostWork{[function = std::move(function)](void*) { function(); }, nullptr, true};
  return submit_and_follow(request, false);
}

uint64_t HostWorker::pending() const {
  const uint64_t retired = stream_->retired.load(std::memory_order_acquire);
  return stream_->submitted.load(std::memory_order_acquire) - retired;
}

Status HostWorker::wait() {
  return pending() == 0 ? Status() : vm::wait(stream_->ticket(stream_->submitted.load(std::memory_order_acquire)));
}

}  // namespace tenon::vm
