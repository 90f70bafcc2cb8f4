// Launches of compiled kernels: divides the items among threads as ranges.
#include <algorithm>
#include <cstring>
#include <new>

#include "providers/cpu/modules/modules.h"
#include "providers/cpu/modules/source.h"
#include "providers/cpu/threads/clock.h"
#include "providers/cpu/threads/lease.h"
#include "providers/cpu/threads/stop.h"

namespace tenon::provider::cpu {
namespace {

using Entry = void (*)(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local);
using FaultEntry = void (*)(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local,
                            FaultSink* sink);

constexpr std::align_val_t cache_line{64};

// The local memory of all threads of one launch. The kernel keeps one for its next launch.
class LocalMemory {
 public:
  explicit LocalMemory(ep_kernel& kernel) : kernel_(kernel) {
    if (kernel.local_stride == 0) return;
    begin_ = kernel.local.exchange(nullptr, std::memory_order_acquire);
    if (begin_ != nullptr) return;
    const uint64_t bytes = kernel.local_stride * static_cast<uint64_t>(std::max(kernel.threads, 1));
    begin_ = static_cast<char*>(::operator new(bytes, cache_line));
  }
  ~LocalMemory() {
    if (begin_ == nullptr) return;
    char* none = nullptr;
    if (kernel_.local.compare_exchange_strong(none, begin_, std::memory_order_release)) return;
    ::operator delete(begin_, cache_line);
  }
  LocalMemory(const LocalMemory&) = delete;
  LocalMemory& operator=(const LocalMemory&) = delete;

  void* of(int32_t thread) const {
    return begin_ != nullptr ? begin_ + static_cast<uint64_t>(thread) * kernel_.local_stride : nullptr;
  }

 private:
  ep_kernel& kernel_;
  char* begin_ = nullptr;
};

struct Call {
  const ep_kernel& kernel;
  void* const* buffers;
  const void* parameters;
  FaultSink* sink;

  void operator()(int64_t begin, int64_t end, void* local) const {
    if ((kernel.flags & EP_ENTRY_FLAG_FAULTS) != 0) {
      reinterpret_cast<FaultEntry>(kernel.function)(buffers, parameters, begin, end, local, sink);
    } else {
      reinterpret_cast<Entry>(kernel.function)(buffers, parameters, begin, end, local);
    }
  }
};

// The first item of `part` if `items` items from `first` on are divided into `parts`.
int64_t begin_of(int64_t first, int64_t items, int32_t part, int32_t parts) {
  const int64_t whole = items / parts * part;
  return first + whole + items % parts * part / parts;
}

constexpr int64_t worth_sharing = 3'000;  // nanoseconds of work; for less, no region is opened anyway
constexpr int64_t clock_takes = 20;

// A hash of the items and parameters of a launch, which determine its time. Never 0.
uint64_t shape_of(const ep_kernel_launch& launch) {
  uint64_t hash = launch.groups[0];
  const auto mix = [&hash](uint64_t word) { hash = (hash ^ word) * 0x9e3779b97f4a7c15 ^ hash >> 29; };
  const auto* bytes = static_cast<const char*>(launch.parameters);
  for (uint32_t at = 0; at < launch.parameter_bytes; at += 8) {
    uint64_t word = 0;
    std::memcpy(&word, bytes + at, std::min(launch.parameter_bytes - at, 8u));
    mix(word);
  }
  return hash | 1;
}

// One thread needs no time of its items but to stop in the middle of a long launch.
constexpr int64_t few_for_one_thread = 4096;

// With at most this many items per thread, each thread takes one range, because more columns at once are computed
// faster.
constexpr int64_t few_items = 16;

// Divides the items from `first` on among threads; `guess` is their estimated time in nanoseconds. Returns the time on
// all threads together.
int64_t share_items(const Call& call, const ep_kernel& kernel, const LocalMemory& local, int64_t first, int64_t items,
                    int64_t guess) {
  const auto run = [&](int32_t part, int32_t parts) {
    const int64_t from = begin_of(first, items - first, part, parts);
    const int64_t to = begin_of(first, items - first, part + 1, parts);
    if (from < to) call(from, to, local.of(parts == 1 ? 0 : runner()));
  };
  const int64_t begin = now();
  const WideLease lease(kernel.threads, guess);
  if (lease.width() == 1 || items - first > few_items * lease.width()) {
    run_parts(lease.width(), guess, run);
  } else {
    run_together(
        lease.width(),
        [](const void* context, int32_t part, int32_t parts) {
          (*static_cast<const decltype(run)*>(context))(part, parts);
        },
        &run);
  }
  return (now() - begin) * lease.width();
}

// The time of an item depends on the parameters, so it is not known in advance. The first few items are timed, and the
// time of the rest is estimated from them. A launch whose items and parameters come again is not timed: if it was too
// short, it runs on one thread; otherwise the shortest time so far is its estimate.
void run_items(const Call& call, ep_kernel& kernel, const LocalMemory& local, const ep_kernel_launch& launch) {
  constexpr int64_t first_share = 256;
  const auto items = static_cast<int64_t>(launch.groups[0]);
  if (items == 1 || (kernel.threads == 1 && items <= few_for_one_thread)) return call(0, items, local.of(0));
  const uint64_t shape = shape_of(launch);
  if (kernel.short_shape.load(std::memory_order_relaxed) == shape) return call(0, items, local.of(0));
  if (kernel.long_shape.load(std::memory_order_relaxed) == shape) {
    const int64_t before = kernel.long_time.load(std::memory_order_relaxed);
    const int64_t taken = share_items(call, kernel, local, 0, items, before);
    if (taken < before) kernel.long_time.store(taken, std::memory_order_relaxed);
    return;
  }
  const int64_t first = std::max<int64_t>(1, items / first_share);
  const int64_t rest = items - first;
  const int64_t begin = now();
  call(0, first, local.of(0));
  const int64_t taken = std::max<int64_t>(now() - begin - clock_takes, 1);
  constexpr double longest = 1e15;
  const double guess = static_cast<double>(taken) / static_cast<double>(first) * static_cast<double>(rest);
  if (guess < worth_sharing) {
    call(first, items, local.of(0));
    if (now() - begin < worth_sharing) kernel.short_shape.store(shape, std::memory_order_relaxed);
    return;
  }
  const int64_t shared = share_items(call, kernel, local, first, items, static_cast<int64_t>(std::min(guess, longest)));
  if (now() - begin < worth_sharing) {
    kernel.short_shape.store(shape, std::memory_order_relaxed);
  } else {
    kernel.long_time.store(taken + shared, std::memory_order_relaxed);
    kernel.long_shape.store(shape, std::memory_order_relaxed);
  }
}

void* address_or_null(ep_buffer buffer) { return buffer.memory != nullptr ? address_of(buffer) : nullptr; }

}  // namespace

ep_status kernel_launch(ep_kernel* kernel, ep_stream*, const ep_kernel_launch* launch, ep_fault* out_fault,
                        ep_error**) {
  begin_stoppable(kernel->host);
  void* buffers[most_buffers];
  uint32_t count = 0;
  for (uint32_t i = 0; i < kernel->buffer_count; ++i) buffers[count++] = address_or_null(launch->buffers[i]);
  if ((kernel->flags & EP_ENTRY_FLAG_WORKSPACE) != 0) buffers[count++] = address_or_null(launch->workspace);
  if ((kernel->flags & EP_ENTRY_FLAG_SCRATCH) != 0) buffers[count++] = address_or_null(launch->scratch);
  FaultSink sink;
  const LocalMemory local(*kernel);
  run_items({*kernel, buffers, launch->parameters, &sink}, *kernel, local, *launch);
  if (sink.raised == 0) [[likely]]
    return EP_STATUS_OK;
  if (out_fault != nullptr) *out_fault = {launch->tag, sink.code, sink.operand, sink.value, sink.limit, 0};
  return EP_STATUS_FAULT;
}

}  // namespace tenon::provider::cpu

ep_kernel::~ep_kernel() {
  if (char* kept = local.load()) ::operator delete (kept, std::align_val_t{64});
}
