// Launches of compiled kernels: items dealt to threads as ranges.
#include <algorithm>
#include <new>

#include "providers/cpu/modules/modules.h"
#include "providers/cpu/modules/source.h"
#include "providers/cpu/threads/clock.h"
#include "providers/cpu/threads/lease.h"

namespace tenon::provider::cpu {
namespace {

using Entry = void (*)(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local);
using FaultEntry = void (*)(void* const* buffers, const void* parameters, int64_t begin, int64_t end, void* local,
                            FaultSink* sink);

constexpr std::align_val_t cache_line{64};

// The local memory of all threads of one launch. The kernel keeps one for the next launch.
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

// What `part` of `parts` begins at, of `items` items from `first` on.
int64_t begin_of(int64_t first, int64_t items, int32_t part, int32_t parts) {
  const int64_t whole = items / parts * part;
  return first + whole + items % parts * part / parts;
}

// Nobody can say beforehand how long an item takes: it depends on the parameters. So the first few items are timed, and
// the rest counts as so many times that.
void run_items(const Call& call, const LocalMemory& local, int64_t items) {
  constexpr int64_t first_share = 256;
  if (items == 1 || call.kernel.threads == 1) return call(0, items, local.of(0));
  const int64_t first = std::max<int64_t>(1, items / first_share);
  const int64_t begin = now();
  call(0, first, local.of(0));
  const double each = static_cast<double>(now() - begin) / static_cast<double>(first);
  const int64_t rest = items - first;
  constexpr double longest = 1e15;
  const auto nanoseconds = static_cast<int64_t>(std::min(each * static_cast<double>(rest), longest));
  parallel(call.kernel.threads, nanoseconds, [&](int32_t part, int32_t parts) {
    const int64_t from = begin_of(first, rest, part, parts);
    const int64_t to = begin_of(first, rest, part + 1, parts);
    if (from < to) call(from, to, local.of(parts == 1 ? 0 : runner()));
  });
}

void* address_or_null(ep_buffer buffer) { return buffer.memory != nullptr ? address_of(buffer) : nullptr; }

}  // namespace

ep_status kernel_launch(ep_kernel* kernel, ep_stream*, const ep_kernel_launch* launch, ep_fault* out_fault,
                        ep_error**) {
  void* buffers[most_buffers];
  uint32_t count = 0;
  for (uint32_t i = 0; i < kernel->buffer_count; ++i) buffers[count++] = address_or_null(launch->buffers[i]);
  if ((kernel->flags & EP_ENTRY_FLAG_WORKSPACE) != 0) buffers[count++] = address_or_null(launch->workspace);
  if ((kernel->flags & EP_ENTRY_FLAG_SCRATCH) != 0) buffers[count++] = address_or_null(launch->scratch);
  FaultSink sink;
  const LocalMemory local(*kernel);
  run_items({*kernel, buffers, launch->parameters, &sink}, local, static_cast<int64_t>(launch->groups[0]));
  if (sink.raised == 0) [[likely]]
    return EP_STATUS_OK;
  if (out_fault != nullptr) *out_fault = {launch->tag, sink.code, sink.operand, sink.value, sink.limit, 0};
  return EP_STATUS_FAULT;
}

}  // namespace tenon::provider::cpu

ep_kernel::~ep_kernel() {
  if (char* kept = local.load()) ::operator delete (kept, std::align_val_t{64});
}
