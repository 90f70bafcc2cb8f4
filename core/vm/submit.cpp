// Submission: on the calling thread, under one lock for all asynchronous streams. Gives
// tickets, derives dependences from the storages, and fills a slot.
#include <algorithm>

#include "core/device/process.h"
#include "core/device/trace.h"
#include "core/vm/command_list.h"
#include "core/vm/engine.h"
#include "core/vm/inline.h"
#include "core/vm/rules.h"
#include "core/vm/segment.h"

namespace tenon::vm {
namespace {

// True if `operands[index]` overwrites its whole storage and no operand of the instruction reads that storage.
bool overwrites(std::span<const Operand> operands, size_t index) {
  if (!operands[index].whole) return false;
  for (size_t i = 0; i < operands.size(); ++i) {
    if (i != index && operands[i].storage == operands[index].storage && !operands[i].whole) return false;
  }
  return true;
}

class Submission {
 public:
  Submission(const Request& request, Slot& slot) : request_(request), stream_(*request.stream), slot_(slot) {
    if (request.graph != nullptr || request.segment != nullptr) work_ = std::make_unique<WideWork>();
    if (request.segment != nullptr) constants_ = request.segment->segment->constants();
  }

  // The first poison among the storages that the instruction reads.
  Status known_poison() const {
    if (!request_.poison.ok()) return request_.poison;
    if (!holds(kPoison)) return Status();
    for (size_t i = 0; i < request_.operands.size(); ++i) {
      const Operand& operand = request_.operands[i];
      if (operand.storage == nullptr || operand.storage->poison.ok()) continue;
      if (!overwrites(request_.operands, i)) return operand.storage->poison;
    }
    return constants_ != nullptr ? constants_->poison() : Status();
  }

  void poison_outputs(const Status& poison) const {
    for (const Operand& operand : request_.operands) {
      if (operand.storage == nullptr || !operand.write) continue;
      operand.storage->poison = poison;
      operand.storage->attention.store(true, std::memory_order_relaxed);
    }
  }

  void derive_dependences() {
    slot_.deps.clear();
    slot_.source_count = 0;
    for (Ticket ticket : request_.waits) depend(ticket);
    if (request_.source) {
      depend(request_.source);
      add_source(request_.source);
    }
    for (size_t i = 0; i < request_.operands.size(); ++i) {
      const Operand& operand = request_.operands[i];
      if (operand.storage == nullptr) continue;
      if (operand.storage->busy_for_read()) refresh(operand.storage);
      const Ticket write{operand.storage->last_write.load(std::memory_order_relaxed)};
      if (write) {
        depend(write);
        if (!overwrites(request_.operands, i)) add_source(write);
      }
      if (!operand.write || !holds(kWriteAfterRead)) continue;
      for (Ticket read : operand.storage->reads) depend(read);
    }
    if (constants_ != nullptr) {
      constants_->for_pending_writes([this](Ticket write) {
        depend(write);
        add_source(write);
      });
    }
    for (Ticket ticket : slot_.deps) {
      uint64_t& covered = covered_by(ticket);
      covered = std::max(covered, ticket.number());
    }
  }

  // Must be called last, when the slot is complete.
  void update_storages(Ticket ticket) {
    slot_.storage_count = 0;
    slot_.output_mask = 0;
    for (const Operand& operand : request_.operands) {
      if (operand.storage == nullptr) continue;
      if (operand.write || operand.storage->deleter) keep(operand);
      if (!operand.write) continue;
      operand.storage->last_write.store(ticket.bits, std::memory_order_release);
      operand.storage->reads.clear();
      if (!operand.storage->poison.ok() && holds(kHeal)) operand.storage->poison = Status();
      operand.storage->attention.store(!operand.storage->poison.ok(), std::memory_order_relaxed);
    }
    for (const Operand& operand : request_.operands) {
      if (operand.storage == nullptr || operand.write) continue;
      if (operand.storage->last_write.load(std::memory_order_relaxed) == ticket.bits) continue;
      operand.storage->reads.add(ticket);
      operand.storage->attention.store(true, std::memory_order_relaxed);
    }
    if (work_ != nullptr) slot_.extras.wide = std::move(work_);
  }

  void fill() {
    slot_.policy = request_.policy;
    slot_.op = request_.op;
    slot_.label = call_site.label;
    slot_.derived = false;
    slot_.awaited.store(false, std::memory_order_relaxed);
    slot_.primitive = request_.primitive;
    if (slot_.primitive != nullptr) [[unlikely]]
      slot_.primitive->retain();
    slot_.first_tag = stream_.next_tag;
    stream_.next_tag += launches();
    slot_.has_extras = request_.policy != Policy::launch || request_.completion != nullptr ||
                       request_.workspace.memory != nullptr || scratch_bytes() != 0;
    if (slot_.has_extras) fill_extras();
    slot_.has_note = request_.launch != nullptr && request_.launch->note != nullptr;
    if (work_ != nullptr) [[unlikely]]
      return fill_wide();
    slot_.operand_count = static_cast<uint8_t>(request_.operands.size());
    for (size_t i = 0; i < request_.operands.size(); ++i) slot_.buffers[i] = buffer_of(request_.operands[i]);
    if (request_.launch != nullptr) fill_launch(*request_.launch);
  }

 private:
  void depend(Ticket ticket) {
    if (ticket.stream() == stream_.id || is_done(ticket)) return;
    if (covered_by(ticket) >= ticket.number()) return;
    const bool same_device = engine().stream(ticket).queue == stream_.queue;
    if (!holds(same_device ? kWaitBetweenStreams : kWaitBetweenDevices)) return;
    slot_.deps.add(ticket);
    const bool is_urgent = request_.policy == Policy::download || stream_.queue->beside;
    if (is_urgent) engine().stream(ticket).slot(ticket.number()).awaited.store(true, std::memory_order_relaxed);
  }

  uint64_t& covered_by(Ticket ticket) {
    if (stream_.covered.size() <= ticket.stream()) stream_.covered.resize(ticket.stream() + 1u);
    return stream_.covered[ticket.stream()];
  }

  static ep_buffer buffer_of(const Operand& operand) {
    return operand.storage != nullptr ? operand.storage->block.at(operand.offset) : ep_buffer{nullptr, 0};
  }

  void add_source(Ticket ticket) {
    if (work_ != nullptr) [[unlikely]]
      return work_->sources.push_back(ticket);
    slot_.sources[slot_.source_count++] = ticket;
  }

  void keep(const Operand& operand) {
    operand.storage->retain();
    if (work_ != nullptr) [[unlikely]] {
      work_->storages.push_back(operand.storage);
      return work_->written.push_back(operand.write);
    }
    if (operand.write) slot_.output_mask |= static_cast<uint16_t>(1u << slot_.storage_count);
    slot_.storages[slot_.storage_count++] = operand.storage;
  }

  // The number of provider launches of the instruction.
  uint64_t launches() const {
    if (request_.list != nullptr) return 1;
    if (request_.segment != nullptr) return request_.segment->segment->launches().size();
    return request_.launch != nullptr || request_.graph != nullptr ? 1 : 0;
  }

  // The stream scratch that its launches need.
  uint64_t scratch_bytes() const {
    if (request_.list != nullptr) return 0;  // a list has its own scratch
    if (request_.segment != nullptr) return request_.segment->segment->scratch_bytes();
    return request_.launch != nullptr ? request_.launch->primitive->scratch_bytes : 0;
  }

  void fill_extras() {
    SlotExtras& extras = slot_.extras;
    extras.bytes = request_.bytes;
    extras.host = request_.host;
    extras.peer = request_.peer;
    extras.staging = request_.staging;
    extras.work = request_.work;
    extras.semaphore.reset(request_.semaphore);
    extras.completion = request_.completion;
    extras.workspace = request_.workspace;
    extras.scratch_bytes = 0;
    if (scratch_bytes() == 0) return;
    extras.scratch = stream_.scratch.at(0);
    extras.scratch_bytes = stream_.scratch.size;
    extras.scratch_number = stream_.scratch_number;
  }

  void fill_wide() {
    slot_.operand_count = 0;
    if (request_.graph != nullptr) {
      work_->graph = request_.graph->graph;
    } else {
      work_->segment = request_.segment->segment->shared_from_this();
      work_->cancellations = CancellationScope::here();
    }
    if (request_.list != nullptr) return fill_replay();
    for (const Operand& operand : request_.operands) work_->buffers.push_back(buffer_of(operand));
  }

  void fill_replay() {
    work_->list = request_.list->shared_from_this();
    for (const uint32_t index : request_.list->moving()) {
      work_->buffers.push_back(buffer_of(request_.operands[index]));
    }
  }

  void fill_launch(const OpLaunch& launch) {
    slot_.primitive = launch.primitive;
    slot_.primitive->retain();
    slot_.scalar_count = static_cast<uint8_t>(launch.scalar_count);
    std::copy_n(launch.scalars, launch.scalar_count, slot_.scalars.begin());
    slot_.has_shapes = launch.shapes != nullptr;
    if (slot_.has_shapes) copy_shapes(launch);
    if (!slot_.has_note) return;
    slot_.note.called = call_site.called;
    slot_.note.operand_inputs = launch.operand_inputs;
    launch.note(launch.context, &slot_.note.inputs);
  }

  void copy_shapes(const OpLaunch& launch) {
    slot_.shape_words.clear();
    slot_.shapes.assign(launch.shapes, launch.shapes + launch.operands.size());
    for (const ep_shape& shape : slot_.shapes) {
      slot_.shape_words.insert(slot_.shape_words.end(), shape.dims, shape.dims + shape.rank);
      slot_.shape_words.insert(slot_.shape_words.end(), shape.strides, shape.strides + shape.rank);
    }
    const int64_t* next = slot_.shape_words.data();
    for (ep_shape& shape : slot_.shapes) {
      shape.dims = next;
      shape.strides = next + shape.rank;
      next += 2 * shape.rank;
    }
  }

  const Request& request_;
  Stream& stream_;
  Slot& slot_;
  std::unique_ptr<WideWork> work_;  // for a graph or a segment, until the slot takes it
  Constants* constants_ = nullptr;  // for a segment
};

bool has_room(Stream& stream) {
  const uint64_t submitted = stream.submitted.load(std::memory_order_relaxed);
  if (submitted - stream.known_retired < Stream::kRing) return true;
  stream.known_retired = stream.retired.load(std::memory_order_acquire);
  return submitted - stream.known_retired < Stream::kRing;
}

// Waits, with no lock held, until a good part of the ring is free.
void make_room(Stream& stream) {
  const uint64_t submitted = stream.submitted.load(std::memory_order_acquire);
  static_cast<void>(wait(stream.ticket(submitted - Stream::kRing / 4 * 3)));
}

}  // namespace

void refresh(Storage* storage) {
  const Ticket write{storage->last_write.load(std::memory_order_relaxed)};
  if (write && is_done(write)) storage->last_write.store(0, std::memory_order_release);
  if (!storage->attention.load(std::memory_order_relaxed)) return;
  storage->reads.remove_if([](Ticket ticket) { return is_done(ticket); });
  storage->attention.store(!storage->reads.empty() || !storage->poison.ok(), std::memory_order_release);
}

Submitted submit(const Request& request) {
  Stream& stream = *request.stream;
  Engine& all = engine();
  std::unique_lock lock(all.submission);
  while (!has_room(stream)) {
    lock.unlock();
    make_room(stream);
    lock.lock();
  }
  const uint64_t number = stream.submitted.load(std::memory_order_relaxed) + 1;
  Slot& slot = stream.slot(number);
  Submission submission(request, slot);
  if (Status poison = submission.known_poison(); !poison.ok()) {
    submission.poison_outputs(poison);
    lock.unlock();
    if (request.staging != nullptr) request.staging->release();
    delete request.work;
    delete request.semaphore;
    return {Ticket(), std::move(poison)};
  }
  const Ticket ticket = stream.ticket(number);
  slot.sequence = ++all.sequence;
  submission.derive_dependences();
  submission.fill();
  submission.update_storages(ticket);
  if (tracing()) [[unlikely]]
    slot.submitted_ns = trace_now();
  stream.submitted.store(number, std::memory_order_seq_cst);
  lock.unlock();
  stream.queue->notify();
  return {ticket, Status()};
}

}  // namespace tenon::vm
