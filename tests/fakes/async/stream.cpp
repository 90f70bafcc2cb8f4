// The fake's streams: threads that run what was handed over.
#include <chrono>
#include <cstring>

#include "tests/fakes/async/device.h"

using tenon::fakes::Command;

namespace {

int64_t element(const ep_operand_desc& operand, int64_t index) {
  int64_t offset = 0;
  for (int32_t axis = operand.rank; axis-- > 0;) {
    offset += index % operand.dims[axis] * operand.strides[axis];
    index /= operand.dims[axis];
  }
  return offset;
}

int64_t count(const ep_operand_desc& operand) {
  int64_t n = 1;
  for (int32_t axis = 0; axis < operand.rank; ++axis) n *= operand.dims[axis];
  return n;
}

void run_copy(const ep_primitive_desc& desc, const Command& command) {
  for (int64_t i = 0; i < count(desc.operands[0]); ++i) {
    std::memcpy(command.pointers[0] + 4 * element(desc.operands[0], i),
                command.pointers[1] + 4 * element(desc.operands[1], i), 4);
  }
}

void run_relu(const ep_primitive_desc& desc, const Command& command) {
  auto* dst = reinterpret_cast<float*>(command.pointers[0]);
  const auto* src = reinterpret_cast<const float*>(command.pointers[1]);
  for (int64_t i = 0; i < count(desc.operands[0]); ++i) {
    const float x = src[element(desc.operands[1], i)];
    dst[element(desc.operands[0], i)] = x > 0 || x != x ? x : 0;
  }
}

// One matrix after another; batch dims are looked up through the strides.
void run_matmul(const ep_primitive_desc& desc, const Command& command) {
  const ep_operand_desc& d = desc.operands[0];
  const ep_operand_desc& a = desc.operands[1];
  const ep_operand_desc& b = desc.operands[2];
  auto* dst = reinterpret_cast<float*>(command.pointers[0]);
  const auto* lhs = reinterpret_cast<const float*>(command.pointers[1]);
  const auto* rhs = reinterpret_cast<const float*>(command.pointers[2]);
  const int32_t row = d.rank - 2;
  const int32_t column = d.rank - 1;
  for (int64_t i = 0; i < count(d); ++i) {
    int64_t rest = i;
    int64_t a_at = 0;
    int64_t b_at = 0;
    for (int32_t axis = column; axis >= 0; --axis) {
      const int64_t at = rest % d.dims[axis];
      rest /= d.dims[axis];
      if (axis != column) a_at += at * a.strides[axis];
      if (axis != row) b_at += at * b.strides[axis];
    }
    float sum = 0;
    for (int64_t k = 0; k < a.dims[column]; ++k)
      sum += lhs[a_at + k * a.strides[column]] * rhs[b_at + k * b.strides[row]];
    dst[element(d, i)] = sum;
  }
}

void run_mix(const ep_primitive_desc& desc, const Command& command) {
  auto* dst = reinterpret_cast<uint32_t*>(command.pointers[0]);
  const auto* a = reinterpret_cast<const uint32_t*>(command.pointers[1]);
  const auto* b = reinterpret_cast<const uint32_t*>(command.pointers[2]);
  const auto tag = static_cast<uint32_t>(command.scalars[0].value.i64);
  for (int64_t i = 0; i < count(desc.operands[0]); ++i) {
    dst[element(desc.operands[0], i)] = 31 * a[element(desc.operands[1], i)] + b[element(desc.operands[2], i)] + tag;
  }
}

void run_primitive(const Command& command) {
  const ep_primitive_desc& desc = command.primitive->desc;
  switch (desc.kind) {
    case EP_PRIMITIVE_copy: return run_copy(desc, command);
    case EP_PRIMITIVE_unary: return run_relu(desc, command);
    case EP_PRIMITIVE_matmul: return run_matmul(desc, command);
    default: return run_mix(desc, command);
  }
}

}  // namespace

ep_stream::ep_stream(ep_device* of) : device(of) {
  random = tenon::fakes::async_control().seed.load() * 0x9e3779b97f4a7c15u + reinterpret_cast<uintptr_t>(this);
  thread = std::thread([this] { run(); });
}

ep_stream::~ep_stream() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
    work.notify_all();
  }
  thread.join();
}

void ep_stream::push(const Command& command) {
  std::lock_guard lock(mutex);
  if (tenon::fakes::async_control().lazy.load(std::memory_order_relaxed)) {
    put_off.push_back(command);
    return;
  }
  queue.push_back(command);
  if (sleeping) work.notify_one();
}

void ep_stream::flush() {
  std::lock_guard lock(mutex);
  if (put_off.empty()) return;
  queue.insert(queue.end(), put_off.begin(), put_off.end());
  put_off.clear();
  work.notify_one();
}

void ep_stream::drain() {
  flush();
  std::unique_lock lock(mutex);
  idle.wait(lock, [this] { return queue.empty() && !running; });
}

void ep_stream::run() {
  std::vector<Command> batch;
  std::unique_lock lock(mutex);
  for (;;) {
    if (queue.empty()) {
      running = false;
      idle.notify_all();
      sleeping = true;
      work.wait(lock, [this] { return stopping || !queue.empty(); });
      sleeping = false;
      if (queue.empty()) return;
    }
    running = true;
    batch.clear();
    batch.swap(queue);
    lock.unlock();
    for (const Command& command : batch) execute(command);
    lock.lock();
  }
}

void ep_stream::execute(const Command& command) {
  if (command.kind == Command::record) {
    std::lock_guard lock(command.event->mutex);
    if (command.event->completed < command.point) command.event->completed = command.point;
    command.event->completed_now.store(command.event->completed, std::memory_order_release);
    command.event->fired.notify_all();
    return;
  }
  if (command.kind == Command::wait) {
    std::unique_lock lock(command.event->mutex);
    command.event->fired.wait(lock, [&] { return command.event->completed >= command.point; });
    return;
  }
  const bool alone = device->busy.fetch_add(1) == 0;
  delay();
  if (tenon::fakes::async_control().lose_device.load()) {
    device->busy.fetch_sub(1);
    return;
  }
  if (!alone) tenon::fakes::async_control().overlaps.fetch_add(1, std::memory_order_relaxed);
  if (command.faults) {
    std::lock_guard lock(mutex);
    faults.push_back({command.tag, EP_FAULT_INDEX_OUT_OF_RANGE, 1, 77, 7, 0});
    fault_count.fetch_add(1, std::memory_order_release);
    tenon::fakes::async_control().faults.fetch_add(1, std::memory_order_relaxed);
  } else if (command.kind == Command::launch) {
    run_primitive(command);
  } else {
    std::memcpy(command.pointers[0], command.pointers[1], command.bytes);
  }
  device->busy.fetch_sub(1);
}

// One instruction in eight takes its time, the others none.
void ep_stream::delay() {
  const uint64_t longest = tenon::fakes::async_control().delay_us.load(std::memory_order_relaxed);
  if (longest == 0) return;
  random = random * 6364136223846793005u + 1442695040888963407u;
  const uint64_t draw = random >> 33;
  if (draw % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(draw / 8 % longest));
  if (draw % 8 == 1) std::this_thread::yield();
}
