#include "core/graph/execute/packing.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "core/device/device_state.h"
#include "core/interpreter/prepared.h"
#include "core/interpreter/side_threads.h"
#include "core/tensor/unread.h"
#include "core/vm/storage.h"

namespace tenon::graph {
namespace {

constexpr uint64_t kWorthAThread = 1 << 20;  // bytes of constants that justify a thread

// One constant, in the form that one launch needs.
struct Work {
  const Prepared* prepared = nullptr;
  size_t input = 0;
  Tensor tensor;
  std::shared_ptr<Constant> packed;  // null: the launch does not take it packed
  std::exception_ptr failure;

  // Threads may share the work for synchronous devices. If packing needs a copy, the calling thread does it, so that
  // its execution report lists the copy.
  bool may_be_shared() const {
    return prepared->device->synchronous && (packed == nullptr || (prepared->dense_inputs >> input & 1) == 0);
  }
  void run() {
    try {
      if (packed != nullptr) {
        packed->input_of(*prepared, input);
      } else {
        value_or_throw(tensor.impl()->storage.plain(tenon::Use::read));
      }
    } catch (...) {
      failure = std::current_exception();
    }
  }
};

std::vector<Work> all_work(const Executable& program) {
  std::vector<Work> all;
  for (const Step& step : program.steps) {
    if (step.prepared == nullptr) continue;
    for (size_t input = 0; input < step.inputs.size(); ++input) {
      const Tensor& constant = program.values[step.inputs[input]].constant;
      if (!constant.defined()) continue;
      Work work{step.prepared.get(), input, constant, nullptr, nullptr};
      if (takes_packed(step, input)) work.packed = Constant::of(constant);
      all.push_back(std::move(work));
    }
  }
  return all;
}

size_t helpers_for(const std::vector<Work*>& shared) {
  uint64_t bytes = 0;
  for (const Work* work : shared) {
    const bool done = work->packed != nullptr ? work->packed->packed_bytes() != 0 : !is_unread(work->tensor);
    if (!done) bytes += static_cast<uint64_t>(work->tensor.bytes());
  }
  return side_threads(bytes, kWorthAThread);
}

// Reading and packing wait for memory, and the constants are independent. So each thread takes the next largest
// constant.
void run_shared(std::vector<Work*> shared) {
  std::stable_sort(shared.begin(), shared.end(),
                   [](const Work* a, const Work* b) { return a->tensor.bytes() > b->tensor.bytes(); });
  share_with(helpers_for(shared), shared.size(), [&](size_t i) { shared[i]->run(); });
}

}  // namespace

bool takes_packed(const Step& step, size_t input) { return step.prepared->packed_input == static_cast<int>(input); }

std::vector<std::shared_ptr<Constant>> ready_constants(const Executable& program) {
  std::vector<Work> all = all_work(program);
  std::vector<Work*> shared;
  for (Work& work : all) {
    if (work.may_be_shared()) shared.push_back(&work);
  }
  run_shared(std::move(shared));
  std::vector<std::shared_ptr<Constant>> packed;
  for (Work& work : all) {
    if (!work.may_be_shared()) work.run();
    if (work.failure != nullptr) std::rethrow_exception(work.failure);
    if (work.packed != nullptr) packed.push_back(std::move(work.packed));
  }
  return packed;
}

}  // namespace tenon::graph
