#include "core/global/communicator_parts.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <numeric>
#include <set>
#include <utility>

#include "core/device/process.h"
#include "core/global/layout.h"
#include "core/vm/host_worker.h"
#include "ep_api/collective_kinds.h"
#include "loader/host/host.h"
#include "loader/settings/settings.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::global {
namespace {

// The message in which a rank reports its failure to others.
struct Alarm {
  uint64_t sequence = 0;  // the number of the failed exchange
  int32_t code = 0;
  char text[500] = {};
};
constexpr size_t alarm_bytes = sizeof(Alarm);
constexpr uint64_t slice_ns = 1'000'000;  // interval between checks for an alarm

// If a rank is late to a collective, the next rank reports it. The other ranks wait this much longer for its alarm.
constexpr double patience = 1.25;

bool is_between_two(int32_t kind) { return kind == EP_COLLECTIVE_send || kind == EP_COLLECTIVE_receive; }

// The elements that rank `rank` of `size` sends to others.
int64_t elements_given(const ep_collective_desc& desc, int32_t rank, int32_t size) {
  const int64_t others = size - 1;
  const auto without_own = [&](const int64_t* counts) { return std::accumulate(counts, counts + size, -counts[rank]); };
  switch (desc.kind) {
    case EP_COLLECTIVE_all_reduce: {
      const int64_t own = part_of(desc.count, size, rank).length;
      return desc.count - own + own * others;
    }
    case EP_COLLECTIVE_all_gather: return desc.dst_counts[rank] * others;
    case EP_COLLECTIVE_reduce_scatter:
    case EP_COLLECTIVE_all_to_all: return without_own(desc.src_counts);
    case EP_COLLECTIVE_broadcast: return desc.peer == rank ? desc.count * others : 0;
    case EP_COLLECTIVE_send: return desc.count;
    default: return 0;
  }
}

void note_traffic(const ep_collective_desc& desc, int32_t rank, int32_t size) {
  if (size == 1) return;
  const int64_t bytes = dtype_bytes(static_cast<DType>(desc.dtype), elements_given(desc, rank, size));
  given.exchanges.fetch_add(1, std::memory_order_relaxed);
  given.bytes.fetch_add(static_cast<uint64_t>(bytes), std::memory_order_relaxed);
}

// Memory that a late rank may still read or write, so it is never freed.
template <class T>
void keep_for_ever(std::unique_ptr<T[]> memory) {
  static std::mutex mutex;
  static auto* kept = new std::vector<std::unique_ptr<T[]>>;
  const std::lock_guard lock(mutex);
  kept->push_back(std::move(memory));
}
}  // namespace

uint64_t digest_of(std::span<const int64_t> counts) {
  uint64_t digest = 0xcbf29ce484222325U;
  for (const int64_t count : counts) {
    for (int byte = 0; byte < 8; ++byte) {
      digest = (digest ^ (static_cast<uint64_t>(count) >> (8 * byte) & 0xff)) * 0x100000001b3U;
    }
  }
  return digest;
}

ep_collective_desc describe(int32_t kind, DType dtype, const void* src, void* dst, int64_t count) {
  ep_collective_desc desc{};
  desc.struct_size = sizeof desc;
  desc.struct_type = EP_STRUCT_COLLECTIVE_DESC;
  desc.kind = kind;
  desc.dtype = static_cast<int32_t>(dtype);
  desc.memory_type = EP_HANDLE_HOST_POINTER;
  desc.src = reinterpret_cast<uintptr_t>(src);
  desc.dst = reinterpret_cast<uintptr_t>(dst);
  desc.count = count;
  return desc;
}

Status wrong_counts(int32_t kind, size_t counts, int32_t size) {
  return Status(Code::invalid_argument,
                fmt::format("{} has {} counts, and there are {} ranks.", ep_collective_name(kind), counts, size));
}

// All live communicators, and the world's. Never destroyed.
struct Communicators {
  std::mutex mutex;
  std::set<Communicator*> live;
  std::shared_ptr<Communicator> world;

  static Communicators& instance() {
    static auto* all = new Communicators;
    return *all;
  }

  // Runs at the end of the process. A communicator may be dropped later. If another thread still waits for a rank, the
  // plug-in is left open, since the process must not wait for that thread.
  static void leave() {
    Communicators& all = instance();
    const std::lock_guard lock(all.mutex);
    bool all_closed = true;
    for (Communicator* communicator : all.live) all_closed = communicator->close() && all_closed;
    if (all_closed) loader::shut_down_collectives(false);
  }
};

// Has a fixed size, so that it can be received without knowing its length.
struct Communicator::Head {
  uint64_t sequence = 0, counts_digest = 0;
  int64_t count = 0;
  int32_t rank = 0, kind = 0, dtype = 0, reduction = 0, peer = 0, memory = 0;  // rank: the number in the launch
  int32_t peer_name = 0, reserved = 0;                                         // the number of `peer` in the launch
  char label[80] = {};

  std::string text() const {
    std::string words = fmt::format("{} of {}", ep_collective_name(kind), dtype_name(static_cast<DType>(dtype)));
    if (ep_collective_is_per_rank(kind) == 0) words += fmt::format("[{}]", count);
    if (kind == EP_COLLECTIVE_broadcast) words += fmt::format(" from rank {}", peer_name);
    if (kind == EP_COLLECTIVE_send) words += fmt::format(" to rank {}", peer_name);
    if (kind == EP_COLLECTIVE_receive) words += fmt::format(" from rank {}", peer_name);
    if (memory != EP_HANDLE_HOST_POINTER) words += " on devices";
    if (label[0] != 0) words += fmt::format(" for '{}'", std::string_view(label, strnlen(label, sizeof label)));
    return words;
  }

  // True if `other` may describe the same exchange on another rank.
  bool fits(const Head& other) const {
    if (dtype != other.dtype || count != other.count || memory != other.memory) return false;
    if (kind == EP_COLLECTIVE_send) return other.kind == EP_COLLECTIVE_receive;
    if (kind == EP_COLLECTIVE_receive) return other.kind == EP_COLLECTIVE_send;
    return kind == other.kind && reduction == other.reduction && peer == other.peer && sequence == other.sequence &&
           counts_digest == other.counts_digest;
  }
};

Communicator::Communicator(loader::OpenCollectives& plugin)
    : plugin_(plugin), alarm_text_(std::make_unique<char[]>(alarm_bytes)) {
  Communicators& all = Communicators::instance();
  const std::lock_guard lock(all.mutex);
  all.live.insert(this);
}

Communicator::~Communicator() {
  {
    Communicators& all = Communicators::instance();
    const std::lock_guard lock(all.mutex);
    all.live.erase(this);
  }
  if (vm::HostWorker* worker = worker_.load(); worker != nullptr) worker->give_back();
  close();
}

bool Communicator::close() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock.owns_lock()) return false;
  if (alarm_ != nullptr) plugin_.ops.exchange_destroy(std::exchange(alarm_, nullptr));
  for (std::unique_ptr<Line>* line : {&data_, &heads_, &alarms_}) line->reset();
  road_.reset();
  broken_ = Status(Code::cancelled, "The communicator is closed: the program is ending.");
  return true;
}

int32_t Communicator::name_of(int32_t rank) const {
  return rank >= 0 && rank < std::ssize(names_) ? names_[static_cast<size_t>(rank)] : rank;
}

Result<std::shared_ptr<Communicator>> Communicator::world() {
  TENON_RETURN_IF_ERROR(process::usable());
  static std::mutex joining;
  const std::lock_guard lock(joining);
  std::shared_ptr<Communicator>& world = Communicators::instance().world;
  if (world == nullptr) {
    TENON_ASSIGN_OR_RETURN(world, join());
    process::at_end(process::Ending::join, Communicators::leave);
  }
  return world;
}

Result<std::shared_ptr<Communicator>> Communicator::join() {
  TENON_ASSIGN_OR_RETURN(loader::OpenCollectives * plugin, loader::open_collectives());
  std::shared_ptr<Communicator> world(new Communicator(*plugin));
  const Line* first = nullptr;
  TENON_RETURN_IF_ERROR(world->open([&]() -> Result<std::unique_ptr<Line>> {
    auto line = std::make_unique<Line>(*plugin);
    TENON_RETURN_IF_ERROR(loader::call_plugin(
        plugin->plugin, first == nullptr ? "world_join" : "communicator_split", [&](ep_error** error) {
          if (first == nullptr) return plugin->ops.world_join(plugin->ops.plugin, &line->handle, &line->info, error);
          return plugin->ops.communicator_split(first->handle, 0, first->info.rank, &line->handle, &line->info, error);
        }));
    if (first == nullptr) first = line.get();
    return line;
  }));
  world->names_.resize(static_cast<size_t>(world->size()));
  std::iota(world->names_.begin(), world->names_.end(), 0);
  TENON_RETURN_IF_ERROR(world->agree_on_versions());
  return world;
}

Status Communicator::open(const MakeLine& make_line) {
  for (std::unique_ptr<Line>* line : {&data_, &heads_, &alarms_}) {
    TENON_ASSIGN_OR_RETURN(*line, make_line());
  }
  info_ = data_->info;
  return start_alarm();
}

// Ranks with different versions of Tenon may interpret the same bytes differently.
Status Communicator::agree_on_versions() {
  if (size() == 1) return {};
  struct Version {
    char text[32];
  };
  auto all = std::make_unique<Version[]>(static_cast<size_t>(size()) + 1);  // the last entry is this rank's
  Version& own = all[static_cast<size_t>(size())];
  std::string_view(TENON_VERSION).copy(own.text, sizeof own.text - 1);
  const std::vector<int64_t> counts(static_cast<size_t>(size()), sizeof(Version));
  ep_collective_desc desc = describe(EP_COLLECTIVE_all_gather, DType::u8, &own, all.get(), 0);
  desc.dst_counts = counts.data();
  const Status gathered = exchange(*data_, desc, [&] {
    return Status(Code::timeout, fmt::format("The {} ranks have not all joined within {} s.", size(),
                                             patience * loader::settings().rank_seconds));
  });
  if (!gathered.ok()) keep_for_ever(std::move(all));
  TENON_RETURN_IF_ERROR(gathered);
  for (int32_t rank = 0; rank < size(); ++rank) {
    const Version& other = all[static_cast<size_t>(rank)];
    if (std::memcmp(other.text, own.text, sizeof own.text) == 0) continue;
    const std::string_view text(other.text, strnlen(other.text, sizeof other.text));
    return Status(Code::version,
                  fmt::format("Rank {} runs Tenon {}, and rank {} runs Tenon {}.", this->rank(), own.text, rank, text),
                  "Start all ranks with one installation.");
  }
  return {};
}

// `own`: this rank's number in the launch.
Status Communicator::learn_names(int32_t own) {
  names_.assign(1, own);
  if (size() == 1) return {};
  const auto ranks = static_cast<size_t>(size());
  auto all = std::make_unique<int32_t[]>(ranks + 1);  // the last entry is this rank's
  all[ranks] = own;
  const std::vector<int64_t> counts(ranks, 1);
  ep_collective_desc desc = describe(EP_COLLECTIVE_all_gather, DType::i32, &all[ranks], all.get(), 0);
  desc.dst_counts = counts.data();
  const Status gathered = exchange(*data_, desc, [&] {
    return Status(Code::timeout, fmt::format("A split of {} ranks has not ended within {} s.", size(),
                                             patience * loader::settings().rank_seconds));
  });
  names_.assign(all.get(), all.get() + ranks);
  if (!gathered.ok()) keep_for_ever(std::move(all));
  return gathered;
}

Result<std::shared_ptr<Communicator>> Communicator::split(int32_t color, int32_t key) {
  // The barrier makes sure that all ranks are here before the plug-in is called, so no rank waits inside it for a
  // missing one.
  TENON_RETURN_IF_ERROR(barrier("split"));
  const std::lock_guard lock(mutex_);
  std::shared_ptr<Communicator> part(new Communicator(plugin_));
  bool is_left_out = false;
  const Status opened = part->open([&]() -> Result<std::unique_ptr<Line>> {
    auto line = std::make_unique<Line>(plugin_);
    TENON_RETURN_IF_ERROR(loader::call_plugin(plugin_.plugin, "communicator_split", [&](ep_error** error) {
      return plugin_.ops.communicator_split(data_->handle, color, key, &line->handle, &line->info, error);
    }));
    is_left_out = line->handle == nullptr;
    return line;
  });
  if (!opened.ok()) return opened;
  if (!is_left_out) TENON_RETURN_IF_ERROR(part->learn_names(names_[static_cast<size_t>(rank())]));
  return is_left_out ? std::shared_ptr<Communicator>() : part;
}

Traffic Communicator::traffic() {
  return {given.exchanges.load(std::memory_order_relaxed), given.bytes.load(std::memory_order_relaxed),
          given.beside.load(std::memory_order_relaxed)};
}

Status Communicator::all_reduce(const void* src, void* dst, int64_t count, DType dtype, Reduction reduction,
                                std::string_view label) {
  ep_collective_desc desc = describe(EP_COLLECTIVE_all_reduce, dtype, src, dst, count);
  desc.reduction = static_cast<int32_t>(reduction);
  return call(desc, 0, label);
}

Status Communicator::all_gather(const void* src, void* dst, std::span<const int64_t> counts, DType dtype,
                                std::string_view label) {
  ep_collective_desc desc = describe(EP_COLLECTIVE_all_gather, dtype, src, dst, 0);
  if (std::ssize(counts) != size()) return wrong_counts(desc.kind, counts.size(), size());
  desc.dst_counts = counts.data();
  return call(desc, digest_of(counts), label);
}

Status Communicator::reduce_scatter(const void* src, void* dst, std::span<const int64_t> counts, DType dtype,
                                    Reduction reduction, std::string_view label) {
  ep_collective_desc desc = describe(EP_COLLECTIVE_reduce_scatter, dtype, src, dst, 0);
  if (std::ssize(counts) != size()) return wrong_counts(desc.kind, counts.size(), size());
  desc.reduction = static_cast<int32_t>(reduction);
  desc.src_counts = counts.data();
  return call(desc, digest_of(counts), label);
}

Status Communicator::all_to_all(const void* src, void* dst, std::span<const int64_t> src_counts,
                                std::span<const int64_t> dst_counts, DType dtype, std::string_view label) {
  ep_collective_desc desc = describe(EP_COLLECTIVE_all_to_all, dtype, src, dst, 0);
  for (const size_t counts : {src_counts.size(), dst_counts.size()}) {
    if (static_cast<int64_t>(counts) != size()) return wrong_counts(desc.kind, counts, size());
  }
  desc.src_counts = src_counts.data();
  desc.dst_counts = dst_counts.data();
  return call(desc, 0, label);  // counts differ between ranks, so they are not compared
}

Status Communicator::broadcast(void* data, int64_t count, DType dtype, int32_t root, std::string_view label) {
  const bool is_root = root == rank();
  ep_collective_desc desc =
      describe(EP_COLLECTIVE_broadcast, dtype, is_root ? data : nullptr, is_root ? nullptr : data, count);
  desc.peer = root;
  return call(desc, 0, label);
}

Status Communicator::send(const void* src, int64_t count, DType dtype, int32_t to, std::string_view label) {
  ep_collective_desc desc = describe(EP_COLLECTIVE_send, dtype, src, nullptr, count);
  desc.peer = to;
  return call(desc, 0, label);
}

Status Communicator::receive(void* dst, int64_t count, DType dtype, int32_t from, std::string_view label) {
  ep_collective_desc desc = describe(EP_COLLECTIVE_receive, dtype, nullptr, dst, count);
  desc.peer = from;
  return call(desc, 0, label);
}

Status Communicator::barrier(std::string_view label) {
  auto here = std::make_unique<uint8_t[]>(1);
  const Status met = all_reduce(here.get(), here.get(), 1, DType::u8, Reduction::max, label);
  if (!met.ok()) keep_for_ever(std::move(here));
  return met;
}

// Gives the same result on all ranks, so that a refused call leaves them in step.
Status Communicator::refuse_on_sight(const Line& line, const ep_collective_desc& desc) const {
  const auto dtype = static_cast<DType>(desc.dtype);
  const loader::CollectivesInfo& info = line.plugin.info;
  const uint64_t known = ep_collective_reduces(desc.kind) != 0 ? info.reduced_dtypes : info.dtypes;
  if (desc.dtype < 1 || desc.dtype > 63 || (known >> desc.dtype & 1) == 0) {
    return Status(Code::unsupported, fmt::format("{} does not support {} with {}.", ep_collective_name(desc.kind),
                                                 dtype_name(dtype), info.name));
  }
  if (ep_collective_reduces(desc.kind) != 0) {
    const bool of_bool = desc.reduction == EP_REDUCE_any || desc.reduction == EP_REDUCE_all;
    const bool is_known = desc.reduction > 0 && desc.reduction < 64 && (info.reductions >> desc.reduction & 1) != 0;
    if (!is_known || of_bool != (dtype == DType::boolean)) {
      return Status(Code::unsupported, fmt::format("{} of {} does not support reduction number {}.",
                                                   ep_collective_name(desc.kind), dtype_name(dtype), desc.reduction));
    }
  }
  if (desc.count < 0) {
    return Status(Code::invalid_argument, fmt::format("{} of {} elements: a count must be at least 0.",
                                                      ep_collective_name(desc.kind), desc.count));
  }
  for (const int64_t* counts : {desc.src_counts, desc.dst_counts}) {
    for (int32_t rank = 0; counts != nullptr && rank < size(); ++rank) {
      if (counts[rank] >= 0) continue;
      return Status(Code::invalid_argument, fmt::format("{} of {} elements of rank {}: a count must be at least 0.",
                                                        ep_collective_name(desc.kind), counts[rank], name_of(rank)));
    }
  }
  const bool is_peer_wrong = desc.peer < 0 || desc.peer >= size() || (is_between_two(desc.kind) && desc.peer == rank());
  if (is_peer_wrong) {
    return Status(Code::invalid_argument, fmt::format("Rank {} of {} ranks cannot {} with rank {}.", rank(), size(),
                                                      ep_collective_name(desc.kind), desc.peer));
  }
  return {};
}

Status Communicator::call(const ep_collective_desc& desc, uint64_t counts_digest, std::string_view label) {
  TENON_RETURN_IF_ERROR(process::usable());
  TENON_RETURN_IF_ERROR(wait_for_begun());
  const std::lock_guard lock(mutex_);
  TENON_RETURN_IF_ERROR(broken_);
  return call_over(*data_, desc, counts_digest, label);
}

// The caller holds the lock, and the communicator is not broken.
Status Communicator::call_over(const Line& line, const ep_collective_desc& desc, uint64_t counts_digest,
                               std::string_view label) {
  TENON_RETURN_IF_ERROR(refuse_on_sight(line, desc));
  Head head;
  head.sequence = is_between_two(desc.kind) ? 0 : ++sequence_;
  head.counts_digest = counts_digest;
  head.count = desc.count;
  head.rank = name_of(rank());
  head.kind = desc.kind;
  head.dtype = desc.dtype;
  head.reduction = desc.reduction;
  head.peer = desc.peer;
  head.peer_name = name_of(desc.peer);
  head.memory = desc.memory_type;
  label.copy(head.label, sizeof head.label - 1);
  broken_ = !alarm_failure_.ok() && alarm_at_ <= sequence_ ? alarm_failure_ : meet_and_move(line, desc, head);
  is_broken_ = !broken_.ok();
  if (!broken_.ok() && alarm_failure_.ok()) raise_alarm(broken_);
  if (broken_.ok()) note_traffic(desc, rank(), size());
  return broken_;
}

Status Communicator::meet_and_move(const Line& line, const ep_collective_desc& desc, const Head& head) {
  if (size() > 1) {
    int32_t to = (rank() + 1) % size(), from = (rank() + size() - 1) % size();
    if (desc.kind == EP_COLLECTIVE_send) to = desc.peer, from = -1;
    if (desc.kind == EP_COLLECTIVE_receive) from = desc.peer, to = -1;
    TENON_RETURN_IF_ERROR(meet(head, to, from));
  }
  return move(line, desc, head);
}

// Sends `own` to rank `to` and receives the head of rank `from`; -1: no rank.
Status Communicator::meet(const Head& own, int32_t to, int32_t from) {
  auto heads = std::make_unique<Head[]>(2);
  heads[0] = own;
  const Status met = meet_over(heads.get(), to, from);
  if (!met.ok()) keep_for_ever(std::move(heads));
  return met;
}

// Sends the first of `heads` and receives the second.
Status Communicator::meet_over(Head* heads, int32_t to, int32_t from) {
  const Head &own = heads[0], &other = heads[1];
  const int32_t seconds = loader::settings().rank_seconds;
  // Post the receive first, so that the message finds its buffer.
  ep_exchange *hearing = nullptr, *sending = nullptr;
  if (from >= 0) {
    ep_collective_desc hear = describe(EP_COLLECTIVE_receive, DType::u8, nullptr, heads + 1, sizeof(Head));
    hear.peer = from;
    TENON_ASSIGN_OR_RETURN(hearing, start(*heads_, hear));
  }
  if (to >= 0) {
    ep_collective_desc say = describe(EP_COLLECTIVE_send, DType::u8, heads, nullptr, sizeof(Head));
    say.peer = to;
    const Result<ep_exchange*> started = start(*heads_, say);
    if (!started.ok() && hearing != nullptr) heads_->plugin.ops.exchange_destroy(hearing);
    TENON_RETURN_IF_ERROR(started.status());
    sending = started.value();
  }
  Status met;
  if (hearing != nullptr) {
    met = wait(*heads_, hearing, seconds, [&] {
      return Status(Code::timeout,
                    fmt::format("Rank {} has not called {} within {} s.", name_of(from), own.text(), seconds),
                    "Find out what that rank does; TENON_RANK_SECONDS sets the time.");
    });
    if (met.ok() && !own.fits(other)) {
      met = Status(Code::invalid_argument,
                   fmt::format("The ranks do not agree: rank {} calls {}, and rank {} calls {}.", own.rank, own.text(),
                               other.rank, other.text()),
                   "All ranks have to make the same calls in the same order.");
    }
  }
  if (sending == nullptr) return met;
  const Status said = wait(*heads_, sending, met.ok() ? seconds : 1e-3, [&] {
    return Status(Code::timeout,
                  fmt::format("Rank {} has not taken part in {} within {} s.", name_of(to), own.text(), seconds));
  });
  return met.ok() ? said : met;
}

// A count above the plug-in's limit is sent in parts.
Status Communicator::move(const Line& line, ep_collective_desc desc, const Head& head) {
  const double seconds = loader::settings().rank_seconds;
  const auto late = [&] {
    return Status(Code::timeout, fmt::format("{} has not ended within {} s, although rank {} has called it.",
                                             head.text(), patience * seconds, name_of((rank() + size() - 1) % size())));
  };
  const int64_t limit = line.plugin.info.largest_count;
  const bool in_parts = limit > 0 && desc.count > limit;
  if (!in_parts) return exchange(line, desc, late);
  const auto bytes = static_cast<uint64_t>(dtype_size(static_cast<DType>(desc.dtype)));
  for (int64_t left = desc.count; left > 0; left -= desc.count) {
    desc.count = std::min(left, limit);
    TENON_RETURN_IF_ERROR(exchange(line, desc, late));
    if (desc.src != 0) desc.src += static_cast<uint64_t>(desc.count) * bytes;
    if (desc.dst != 0) desc.dst += static_cast<uint64_t>(desc.count) * bytes;
  }
  return {};
}

Result<ep_exchange*> Communicator::start(const Line& line, const ep_collective_desc& desc) {
  ep_exchange* started = nullptr;
  TENON_RETURN_IF_ERROR(loader::call_plugin(line.plugin.plugin, "exchange_start", [&](ep_error** error) {
    return line.plugin.ops.exchange_start(line.handle, &desc, &started, error);
  }));
  return started;
}

Status Communicator::exchange(const Line& line, const ep_collective_desc& desc, const std::function<Status()>& late) {
  TENON_ASSIGN_OR_RETURN(ep_exchange* const started, start(line, desc));
  return wait(line, started, patience * loader::settings().rank_seconds, late);
}

// Waits for `exchange` and destroys it. `seconds` 0: without a limit.
Status Communicator::wait(const Line& line, ep_exchange* exchange, double seconds,
                          const std::function<Status()>& late) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  Status answer;
  while (true) {
    ep_error* error = nullptr;
    const ep_status status = line.plugin.ops.exchange_wait(exchange, slice_ns, &error);
    answer = loader::take_error(status, error, "exchanging data with other ranks");
    if (status == EP_STATUS_OK) break;
    // A rank that has ended may have sent its reason earlier. Ignore alarms of later exchanges than this one.
    listen();
    const bool is_due = !alarm_failure_.ok() && (alarm_at_ <= sequence_ || status != EP_STATUS_TIMEOUT);
    if (is_due) answer = alarm_failure_;
    if (status != EP_STATUS_TIMEOUT || is_due) break;
    const std::chrono::duration<double> waited = Clock::now() - begin;
    if (seconds > 0 && waited.count() >= seconds) {
      answer = late();
      break;
    }
  }
  line.plugin.ops.exchange_destroy(exchange);
  return answer;
}

Status Communicator::start_alarm() {
  if (size() == 1 || alarms_->handle == nullptr) return {};
  ep_collective_desc desc = describe(EP_COLLECTIVE_receive, DType::u8, nullptr, alarm_text_.get(), alarm_bytes);
  desc.peer = EP_RANK_ANY;
  TENON_ASSIGN_OR_RETURN(alarm_, start(*alarms_, desc));
  return {};
}

// Reads the alarm of another rank, if one has arrived.
void Communicator::listen() {
  if (alarm_ == nullptr) return;
  ep_error* error = nullptr;
  const ep_status status = plugin_.ops.exchange_wait(alarm_, 0, &error);
  const Status asked = loader::take_error(status, error, "listening for the failures of other ranks");
  if (status == EP_STATUS_TIMEOUT) return;
  plugin_.ops.exchange_destroy(std::exchange(alarm_, nullptr));
  if (!asked.ok()) return;  // no rank is left to send an alarm
  Alarm alarm;
  std::memcpy(&alarm, alarm_text_.get(), sizeof alarm);
  alarm_at_ = alarm.sequence;
  alarm_failure_ =
      Status(static_cast<Code>(alarm.code), std::string(alarm.text, strnlen(alarm.text, sizeof alarm.text)));
}

// Reports `failure` to every other rank. Does not wait for a rank that does not receive it.
void Communicator::raise_alarm(const Status& failure) {
  Alarm alarm;
  alarm.sequence = sequence_;
  alarm.code = static_cast<int32_t>(failure.code());
  failure.message().copy(alarm.text, sizeof alarm.text - 1);
  auto text = std::make_unique<char[]>(alarm_bytes);
  std::memcpy(text.get(), &alarm, sizeof alarm);
  ep_collective_desc desc = describe(EP_COLLECTIVE_send, DType::u8, text.get(), nullptr, alarm_bytes);
  for (desc.peer = 0; desc.peer < size(); ++desc.peer) {
    if (desc.peer == rank()) continue;
    const Result<ep_exchange*> sending = start(*alarms_, desc);
    if (!sending.ok()) continue;
    ep_error* error = nullptr;
    const ep_status sent = plugin_.ops.exchange_wait(sending.value(), slice_ns, &error);
    const Status ignored = loader::take_error(sent, error, "reporting a failure");
    plugin_.ops.exchange_destroy(sending.value());
  }
  keep_for_ever(std::move(text));
}

}  // namespace tenon::global
