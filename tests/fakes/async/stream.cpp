// The streams of the fake, and the threads that run them.
#include <algorithm>
#include <chrono>
#include <cstring>

#include "primitives/descriptor/descriptor.h"
#include "tests/fakes/async/device.h"
#include "tests/fakes/async/layouts.h"

using tenon::fakes::Command;

namespace {

int64_t element(const ep_operand_desc& operand, int64_t index) {
  if (operand.rank == 1) return index * operand.strides[0];
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

// Computes one matrix after the other. The strides give the position of each.
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
  auto* workspace = reinterpret_cast<uint32_t*>(command.workspace);
  auto* scratch = reinterpret_cast<uint32_t*>(command.scratch);
  const int64_t n = count(desc.operands[0]);
  for (int64_t i = 0; workspace != nullptr && i < n; ++i) workspace[i] = 31 * a[element(desc.operands[1], i)];
  if (workspace != nullptr) std::this_thread::yield();
  for (int64_t i = 0; i < n; ++i) {
    const uint32_t product = workspace != nullptr ? workspace[i] : 31 * a[element(desc.operands[1], i)];
    dst[element(desc.operands[0], i)] = product + b[element(desc.operands[2], i)] + tag + (scratch ? scratch[0] : 0);
  }
  if (command.soils) scratch[0] = 1;
}

int64_t index_at(const ep_operand_desc& operand, const char* data, int64_t offset) {
  if (operand.dtype == EP_DTYPE_i32) return reinterpret_cast<const int32_t*>(data)[offset];
  return reinterpret_cast<const int64_t*>(data)[offset];
}

// The first index out of range is the fault. Elements without a valid index do not change.
bool run_gather(const ep_primitive_desc& desc, const Command& command, ep_fault* fault) {
  const ep_operand_desc& d = desc.operands[0];
  const ep_operand_desc& s = desc.operands[1];
  const ep_operand_desc& index = desc.operands[2];
  const int32_t axis = desc.attributes.gather.axis;
  const bool slices = desc.attributes.gather.mode == EP_GATHER_SLICES;
  const int32_t first = slices ? axis : 0;  // the axes of the index among the axes of the result
  const int64_t length = s.dims[axis];
  bool sound = true;
  for (int64_t i = 0; i < count(d); ++i) {
    int64_t rest = i;
    int64_t index_offset = 0;
    int64_t source_offset = 0;
    for (int32_t at = d.rank; at-- > 0; rest /= d.dims[at]) {
      const int64_t place = rest % d.dims[at];
      if (at >= first && at < first + index.rank) index_offset += place * index.strides[at - first];
      if (slices && at >= first + index.rank) source_offset += place * s.strides[at - index.rank + 1];
      if (slices ? at < first : at != axis) source_offset += place * s.strides[at];
    }
    const int64_t given = index_at(index, command.pointers[2], index_offset);
    if (given < -length || given >= length) {
      if (sound) *fault = {command.tag, EP_FAULT_INDEX_OUT_OF_RANGE, 2, given, length, 0};
      sound = false;
      continue;
    }
    source_offset += (given < 0 ? given + length : given) * s.strides[axis];
    std::memcpy(command.pointers[0] + 4 * element(d, i), command.pointers[1] + 4 * source_offset, 4);
  }
  return sound;
}

// Returns false if the kernel met bad data; `fault` describes it.
bool run_primitive(const Command& command, ep_fault* fault) {
  const ep_primitive_desc& desc = command.primitive->desc;
  if (desc.kind == EP_PRIMITIVE_gather) return run_gather(desc, command, fault);
  switch (desc.kind) {
    case EP_PRIMITIVE_copy: run_copy(desc, command); break;
    case EP_PRIMITIVE_unary: run_relu(desc, command); break;
    case EP_PRIMITIVE_matmul: run_matmul(desc, command); break;
    default: run_mix(desc, command);
  }
  return true;
}

bool run_in_layouts(const Command& command, ep_fault* fault) {
  tenon::fakes::PlainRun run(command.primitive->desc, command.pointers.data());
  const ep_primitive primitive{command.primitive->device, run.desc, {}};
  Command plain = command;
  plain.primitive = &primitive;
  std::copy(run.operands.begin(), run.operands.end(), plain.pointers.begin());
  const bool sound = !command.faults && run_primitive(plain, fault);
  run.finish();
  return sound;
}

// False while the event or semaphore that the command waits for has not fired.
bool can_run(const Command& command) {
  if (command.kind == Command::await) return tenon::fakes::has_come(*command.semaphore, command.point);
  if (command.kind != Command::wait) return true;
  const bool late = tenon::fakes::async_control().late_waits.load(std::memory_order_relaxed);
  const uint64_t point = late ? command.event->recorded_now.load(std::memory_order_seq_cst) : command.point;
  return command.event->completed_now.load(std::memory_order_seq_cst) >= point;
}

// The number of launches in the command.
size_t launches_of(const Command& command) {
  if (command.kind == Command::replay) return tenon::fakes::list_length(command);
  return command.kind < Command::replay || command.kind == Command::kernel ? 1 : 0;
}

void wait_as_stated(const Command& command) {
  const uint64_t taken = tenon::fakes::async_control().launch_us.load(std::memory_order_relaxed) * launches_of(command);
  if (taken != 0) std::this_thread::sleep_for(std::chrono::microseconds(taken));
}

constexpr int kLooks = 50;  // how often a single thread without work looks before it sleeps

}  // namespace

ep_stream::ep_stream(ep_device* of) : device(of) {
  random = tenon::fakes::async_control().seed.load() * 0x9e3779b97f4a7c15u + reinterpret_cast<uintptr_t>(this);
  std::lock_guard lock(device->mutex);
  device->streams.push_back(this);
  device->add_thread();
}

ep_stream::~ep_stream() {
  drain();
  std::lock_guard lock(device->mutex);
  std::erase(device->streams, this);
}

void ep_stream::push(Command command) {
  if (recording != nullptr) return recording->commands.push_back(std::move(command));
  std::lock_guard lock(device->mutex);
  if (tenon::fakes::async_control().lazy.load(std::memory_order_relaxed)) {
    put_off.push_back(std::move(command));
    any_put_off.store(true);
    return;
  }
  queue.push_back(std::move(command));
  device->hand_over(*this);
}

void ep_stream::flush() {
  if (!any_put_off.load()) return;
  std::lock_guard lock(device->mutex);
  any_put_off.store(false);
  queue.insert(queue.end(), put_off.begin(), put_off.end());
  put_off.clear();
  device->hand_over(*this);
}

bool ep_stream::drained() const { return !running && at == batch.size() && queue.empty(); }

void ep_stream::drain() {
  flush();
  std::unique_lock lock(device->mutex);
  device->idle.wait(lock, [this] { return drained(); });
}

bool ep_stream::ready() const {
  if (running) return false;
  if (at != batch.size()) return can_run(batch[at]);
  return !queue.empty() && can_run(queue.front());
}

bool ep_stream::awaits_semaphore() const {
  if (running) return false;
  if (at != batch.size()) return batch[at].kind == Command::await;
  return !queue.empty() && queue.front().kind == Command::await;
}

// Returns false if no work is left.
bool ep_stream::next_batch() {
  std::lock_guard lock(device->mutex);
  batch.clear();
  at = 0;
  batch.swap(queue);
  return !batch.empty();
}

void ep_stream::run() {
  bool fired = false;  // an event that other streams may wait for has fired
  while (at != batch.size() || next_batch()) {
    const Command& command = batch[at];
    if (!can_run(command)) return;
    if (fired) device->look_again();
    fired = command.kind == Command::record;
    execute(command);
    ++at;
  }
}

ep_device::~ep_device() {
  {
    std::lock_guard lock(mutex);
    stopping = true;
    work.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
}

void ep_device::add_thread() {
  threads.emplace_back([this] { run_thread(); });
}

void ep_device::hand_over(const ep_stream& stream) {
  handed_over.fetch_add(1);
  if (!looking && sleeping.load() != 0 && (stream.ready() || stream.awaits_semaphore())) work.notify_one();
}

void ep_device::look_again() {
  if (sleeping.load(std::memory_order_seq_cst) == 0) return;
  std::lock_guard lock(mutex);
  if (find_ready() != nullptr) work.notify_one();
}

ep_stream* ep_device::find_ready() const {
  const auto found =
      std::find_if(streams.begin(), streams.end(), [](const ep_stream* stream) { return stream->ready(); });
  return found != streams.end() ? *found : nullptr;
}

bool ep_device::awaits_semaphore() const {
  return std::any_of(streams.begin(), streams.end(),
                     [](const ep_stream* stream) { return stream->awaits_semaphore(); });
}

void ep_device::run_thread() {
  std::unique_lock lock(mutex);
  for (;;) {
    if (ep_stream* stream = find_ready()) {
      stream->running = true;
      if (sleeping.load() != 0 && find_ready() != nullptr) work.notify_one();
      lock.unlock();
      stream->run();
      lock.lock();
      stream->running = false;
      idle.notify_all();
    } else if (stopping) {
      return;
    } else if (!looking) {
      looking = true;
      const uint64_t seen = handed_over.load();
      lock.unlock();
      for (int looks = 0; looks < kLooks && handed_over.load() == seen; ++looks) std::this_thread::yield();
      lock.lock();
      looking = false;
      if (handed_over.load() == seen) sleep(lock);
    } else {
      sleep(lock);
    }
  }
}

void ep_device::sleep(std::unique_lock<std::mutex>& lock) {
  sleeping.fetch_add(1, std::memory_order_seq_cst);
  if (find_ready() == nullptr && !stopping) {
    if (awaits_semaphore()) {
      work.wait_for(lock, std::chrono::microseconds(200));
    } else {
      work.wait(lock);
    }
  }
  sleeping.fetch_sub(1, std::memory_order_seq_cst);
}

void ep_stream::execute(const Command& command) {
  while (tenon::fakes::async_control().hold.load()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  if (command.kind == Command::wait) return;
  if (command.kind == Command::await || command.kind == Command::signal) return tenon::fakes::run_semaphore(command);
  if (command.kind == Command::record) {
    std::lock_guard lock(command.event->mutex);
    command.event->fired_ns = static_cast<uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
    if (command.event->completed < command.point) command.event->completed = command.point;
    command.event->completed_now.store(command.event->completed, std::memory_order_seq_cst);
    command.event->fired.notify_all();
    return;
  }
  const bool alone = device->busy.fetch_add(1) == 0;
  delay();
  wait_as_stated(command);
  if (tenon::fakes::async_control().lose_device.load()) {
    device->busy.fetch_sub(1);
    return;
  }
  if (!alone) tenon::fakes::async_control().overlaps.fetch_add(1, std::memory_order_relaxed);
  std::vector<ep_fault> faults;
  if (!tenon::fakes::async_control().computes.load(std::memory_order_relaxed) && launches_of(command) != 0) {
    if (command.kind == Command::replay) tenon::fakes::end_replay(command);
  } else {
    command.kind == Command::replay ? replay(command, &faults) : compute(command, &faults);
  }
  for (const ep_fault& each : faults) report(each);
  device->busy.fetch_sub(1);
}

// Runs one launch or transfer and appends the faults.
void ep_stream::compute(const Command& command, std::vector<ep_fault>* faults) const {
  ep_fault fault{command.tag, EP_FAULT_INDEX_OUT_OF_RANGE, 1, 77, 7, command.overflows ? EP_FAULT_FLAG_OVERFLOW : 0};
  bool sound = !command.faults;
  if (command.kind == Command::launch && tenon::descriptor::has_opaque(command.primitive->desc)) {
    sound = run_in_layouts(command, &fault);
  } else if (sound && command.kind == Command::launch) {
    sound = run_primitive(command, &fault);
  } else if (command.kind == Command::reference) {
    tenon::fakes::run_reference(command, faults);
  } else if (command.kind == Command::kernel) {
    tenon::fakes::run_kernel(command, faults);
  } else if (command.kind == Command::pack) {
    tenon::fakes::run_pack(command);
  } else if (command.kind == Command::graph) {
    tenon::fakes::run_graph(command, faults);
  } else if (sound) {
    std::memcpy(command.pointers[0], command.pointers[1], command.bytes);
  }
  if (!sound) faults->push_back(fault);
  if (!faults->empty() && command.scratch != nullptr) command.scratch[0] = 1;
}

void ep_stream::replay(const Command& command, std::vector<ep_fault>* faults) const {
  for (size_t i = 0; i < tenon::fakes::list_length(command); ++i) {
    std::vector<ep_fault> met;
    compute(tenon::fakes::placed(command, i), &met);
    for (ep_fault& fault : met) fault.flags |= EP_FAULT_FLAG_NODE(i);
    faults->insert(faults->end(), met.begin(), met.end());
  }
  tenon::fakes::end_replay(command);
}

void ep_stream::report(const ep_fault& fault) {
  std::lock_guard lock(mutex);
  faults.push_back(fault);
  fault_count.fetch_add(1, std::memory_order_release);
  tenon::fakes::async_control().faults.fetch_add(1, std::memory_order_relaxed);
}

// One instruction in eight is delayed.
void ep_stream::delay() {
  const uint64_t longest = tenon::fakes::async_control().delay_us.load(std::memory_order_relaxed);
  if (longest == 0) return;
  random = random * 6364136223846793005u + 1442695040888963407u;
  const uint64_t draw = random >> 33;
  if (draw % 8 == 0) std::this_thread::sleep_for(std::chrono::microseconds(draw / 8 % longest));
  if (draw % 8 == 1) std::this_thread::yield();
}
