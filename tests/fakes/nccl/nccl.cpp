// libnccl.so.2 without a GPU: see README.md.
#include <cuda.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "ep_api/ep_api.h"
#include "primitives/dtype/dtype.h"
#include "primitives/reference/element.h"
#include "primitives/text/format.h"
#include "tests/fakes/nccl/wires.h"

#define FAKE_API extern "C" __attribute__((visibility("default")))

using tenon::DType;
using tenon::fakes::Wires;

namespace {

enum Result : int { success = 0, invalid_argument = 4, invalid_usage = 5, remote_error = 6, in_progress = 7 };

struct UniqueId {
  char bytes[128];
};

struct Config {
  size_t size;
  unsigned magic, version;
  int blocking;
};

// One call. The whole group's messages are sent first, so that calls in a group cannot wait for each other in any
// order.
struct Work {
  std::function<void()> send;
  std::function<bool()> receive;  // false: a rank has left
};

std::atomic<uint64_t> calls{0};

}  // namespace

// The stream's unfinished work keeps it alive.
struct State {
  std::unique_ptr<Wires> wires;
  std::atomic<bool> aborted{false};
  std::atomic<int> failure{success};
};

struct ncclComm {
  std::shared_ptr<State> state = std::make_shared<State>();
  CUdevice device = 0;
  bool complete = false;                        // all ranks have joined
  int asked = 0;                                // number of questions since the group ended
  std::vector<std::pair<CUstream, Work>> work;  // work of the group that is not yet on its stream
};

namespace {

thread_local int depth = 0;
thread_local std::vector<ncclComm*> grouped;  // communicators that have work in the group

struct Batch {
  std::shared_ptr<State> state;
  std::vector<Work> work;
};

void run_batch(void* data) {
  const std::unique_ptr<Batch> batch(static_cast<Batch*>(data));
  State& state = *batch->state;
  for (const Work& work : batch->work) work.send();
  for (const Work& work : batch->work) {
    if (state.aborted) return;
    if (work.receive()) continue;
    if (!state.aborted) state.failure = remote_error;
    while (!state.aborted) usleep(100);  // like a kernel that waits forever
    return;
  }
}

void submit(ncclComm& comm) {
  while (!comm.work.empty()) {
    const CUstream stream = comm.work.front().first;
    auto batch = std::make_unique<Batch>(Batch{comm.state, {}});
    for (auto& [where, work] : comm.work) {
      if (where == stream) batch->work.push_back(std::move(work));
    }
    std::erase_if(comm.work, [&](const auto& each) { return each.first == stream; });
    cuLaunchHostFunc(stream, run_batch, batch.release());
  }
}

// NCCL's numbers of the dtypes.
DType dtype_of(int type) {
  constexpr DType types[] = {DType::i8,  DType::u8,  DType::i32, DType::u32, DType::i64,
                             DType::u64, DType::f16, DType::f32, DType::f64, DType::bf16};
  return types[type];
}
size_t size_of(int type) { return static_cast<size_t>(tenon::dtype_size(dtype_of(type))); }

// True if all these bytes are in the memory of `comm`'s device.
bool is_of_device(const ncclComm& comm, const void* data, size_t bytes) {
  if (bytes == 0) return true;
  const auto address = reinterpret_cast<CUdeviceptr>(data);
  int device = -1;
  CUdeviceptr start = 0;
  size_t size = 0;
  return cuPointerGetAttribute(&device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, address) == CUDA_SUCCESS &&
         cuPointerGetAttribute(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, address) == CUDA_SUCCESS &&
         cuPointerGetAttribute(&size, CU_POINTER_ATTRIBUTE_RANGE_SIZE, address) == CUDA_SUCCESS &&
         device == comm.device && address + bytes <= start + size;
}

Result add(ncclComm* comm, CUstream stream, Work work) {
  ++calls;
  if (!comm->complete || depth == 0 || !comm->state->wires) return invalid_usage;
  comm->work.emplace_back(stream, std::move(work));
  if (std::find(grouped.begin(), grouped.end(), comm) == grouped.end()) grouped.push_back(comm);
  return success;
}

std::string bytes_of(const void* data, size_t bytes) { return {static_cast<const char*>(data), bytes}; }

// dst = the parts, combined in the order of ranks and rounded after each rank, as hardware does.
void combine(const std::vector<std::string>& parts, void* dst, size_t count, DType dtype, int op) {
  tenon::reference::with_compute_type(dtype, [&](auto of_type) {
    using T = decltype(of_type);
    for (int64_t i = 0; i < static_cast<int64_t>(count); ++i) {
      T value = tenon::reference::load<T>(dtype, parts.front().data(), i);
      for (size_t rank = 1; rank < parts.size(); ++rank) {
        const T next = tenon::reference::load<T>(dtype, parts[rank].data(), i);
        tenon::reference::store<T>(dtype, dst, i, static_cast<T>(op == 0 ? value + next : value * next));
        value = tenon::reference::load<T>(dtype, dst, i);
      }
      tenon::reference::store<T>(dtype, dst, i, value);
    }
  });
}

// The data that each rank sent to this one, in the order of ranks, `bytes` each.
bool gather(State& state, size_t bytes, std::vector<std::string>* parts) {
  parts->resize(static_cast<size_t>(state.wires->size()));
  for (int rank = 0; rank < state.wires->size(); ++rank) {
    std::string& part = (*parts)[static_cast<size_t>(rank)];
    if (!state.wires->receive(rank, &part, state.aborted) || part.size() != bytes) return false;
  }
  return true;
}

// Reductions: rank `k` of `takers` gets the combination of every rank's data at part_of(k).
Result reduces(ncclComm* comm, CUstream stream, void* dst, size_t count, int type, int op, std::vector<int> takers,
               std::function<const char*(int)> part_of) {
  std::shared_ptr<State> state = comm->state;
  const size_t bytes = count * size_of(type);
  const bool takes = std::find(takers.begin(), takers.end(), state->wires->rank()) != takers.end();
  if ((op != 0 && op != 1) || (takes && !is_of_device(*comm, dst, bytes))) return invalid_argument;
  for (const int taker : takers) {
    if (!is_of_device(*comm, part_of(taker), bytes)) return invalid_argument;
  }
  return add(comm, stream,
             {[=] {
                for (const int taker : takers) state->wires->send(taker, bytes_of(part_of(taker), bytes));
              },
              [=] {
                std::vector<std::string> parts;
                if (!takes) return true;
                if (!gather(*state, bytes, &parts)) return false;
                combine(parts, dst, count, dtype_of(type), op);
                return true;
              }});
}

std::vector<int> all_ranks(const ncclComm& comm) {
  std::vector<int> all;
  for (int rank = 0; rank < comm.state->wires->size(); ++rank) all.push_back(rank);
  return all;
}

Result sends(ncclComm* comm, CUstream stream, const void* src, size_t bytes, std::vector<int> takers) {
  if (!is_of_device(*comm, src, bytes)) return invalid_argument;
  std::shared_ptr<State> state = comm->state;
  return add(comm, stream,
             {[=] {
                for (const int taker : takers) state->wires->send(taker, bytes_of(src, bytes));
              },
              [] { return true; }});
}

Result receives(ncclComm* comm, CUstream stream, void* dst, size_t bytes, std::vector<int> givers) {
  if (!is_of_device(*comm, dst, bytes * givers.size())) return invalid_argument;
  std::shared_ptr<State> state = comm->state;
  return add(comm, stream,
             {[] {},
              [=] {
                char* at = static_cast<char*>(dst);
                for (const int giver : givers) {
                  std::string part;
                  if (!state->wires->receive(giver, &part, state->aborted) || part.size() != bytes) {
                    return false;
                  }
                  std::memcpy(at, part.data(), bytes);
                  at += bytes;
                }
                return true;
              }});
}

// Like NCCL, it refuses two ranks on one device.
int state_of(ncclComm& comm) {
  if (!comm.complete) {
    const std::vector<std::string> devices = comm.state->wires->all_said();
    if (devices.empty()) return in_progress;
    for (size_t a = 0; a < devices.size(); ++a) {
      for (size_t b = 0; b < a; ++b) {
        if (devices[a] == devices[b]) comm.state->failure = invalid_usage;
      }
    }
    comm.complete = true;
  }
  if (comm.state->failure != success) return comm.state->failure;
  if (comm.work.empty()) return success;
  if (++comm.asked < 3) return in_progress;
  submit(comm);
  return success;
}

}  // namespace

// The number of exchanges that the process of a test has requested.
FAKE_API uint64_t fake_nccl_calls() { return calls; }

FAKE_API int ncclGetVersion(int* version) {
  const char* text = std::getenv("FAKE_NCCL_VERSION");
  *version = text != nullptr ? std::atoi(text) : 22803;
  return success;
}

FAKE_API int ncclGetUniqueId(UniqueId* id) {
  static std::atomic<int> made{0};
  const char* folder = std::getenv("FAKE_NCCL_FOLDER");
  const std::string path = fmt::format("{}/nccl_{}_{}", folder != nullptr ? folder : "/tmp", getpid(), ++made);
  if (path.size() >= sizeof id->bytes) return invalid_usage;
  std::memset(id->bytes, 0, sizeof id->bytes);
  std::memcpy(id->bytes, path.data(), path.size());
  return success;
}

FAKE_API int ncclCommInitRankConfig(ncclComm** comm, int size, UniqueId id, int rank, Config* config) {
  const bool is_config = config->magic == 0xcafebeef && config->size >= sizeof(Config) && config->version >= 21400;
  if (!is_config || config->blocking != 0 || rank < 0 || rank >= size) return invalid_argument;
  auto made = std::make_unique<ncclComm>();
  CUdeviceptr probe = 0;
  if (cuMemAlloc(&probe, 1) != CUDA_SUCCESS) return invalid_usage;  // there is no current context
  cuPointerGetAttribute(&made->device, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, probe);
  cuMemFree(probe);
  made->state->wires = std::make_unique<Wires>(id.bytes, rank, size, fmt::format("{}", made->device));
  *comm = made.release();
  return in_progress;
}

FAKE_API int ncclCommGetAsyncError(ncclComm* comm, int* result) {
  *result = state_of(*comm);
  return success;
}

FAKE_API int ncclCommAbort(ncclComm* comm) {
  comm->state->aborted = true;
  comm->state->wires->leave();
  delete comm;
  return success;
}

FAKE_API int ncclGroupStart() {
  ++depth;
  return success;
}

FAKE_API int ncclGroupEnd() {
  if (--depth > 0) return success;
  const bool any = !grouped.empty();
  for (ncclComm* comm : grouped) comm->asked = 0;
  grouped.clear();
  return any ? in_progress : success;
}

FAKE_API int ncclAllReduce(const void* src, void* dst, size_t count, int type, int op, ncclComm* comm,
                           CUstream stream) {
  return reduces(comm, stream, dst, count, type, op, all_ranks(*comm),
                 [src](int) { return static_cast<const char*>(src); });
}
FAKE_API int ncclReduce(const void* src, void* dst, size_t count, int type, int op, int root, ncclComm* comm,
                        CUstream stream) {
  return reduces(comm, stream, dst, count, type, op, {root}, [src](int) { return static_cast<const char*>(src); });
}
FAKE_API int ncclReduceScatter(const void* src, void* dst, size_t count, int type, int op, ncclComm* comm,
                               CUstream stream) {
  const size_t bytes = count * size_of(type);
  return reduces(comm, stream, dst, count, type, op, all_ranks(*comm),
                 [=](int rank) { return static_cast<const char*>(src) + static_cast<size_t>(rank) * bytes; });
}
FAKE_API int ncclAllGather(const void* src, void* dst, size_t count, int type, ncclComm* comm, CUstream stream) {
  const Result sent = sends(comm, stream, src, count * size_of(type), all_ranks(*comm));
  return sent != success ? sent : receives(comm, stream, dst, count * size_of(type), all_ranks(*comm));
}
FAKE_API int ncclBroadcast(const void* src, void* dst, size_t count, int type, int root, ncclComm* comm,
                           CUstream stream) {
  const size_t bytes = count * size_of(type);
  if (comm->state->wires->rank() == root) {
    const Result sent = sends(comm, stream, src, bytes, all_ranks(*comm));
    if (sent != success) return sent;
  }
  return receives(comm, stream, dst, bytes, {root});
}
FAKE_API int ncclSend(const void* src, size_t count, int type, int peer, ncclComm* comm, CUstream stream) {
  return sends(comm, stream, src, count * size_of(type), {peer});
}
FAKE_API int ncclRecv(void* dst, size_t count, int type, int peer, ncclComm* comm, CUstream stream) {
  return receives(comm, stream, dst, count * size_of(type), {peer});
}
