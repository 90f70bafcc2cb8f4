#include "core/compiler/compile/fused_kernel.h"

#include <chrono>
#include <cstring>
#include <utility>

#include "core/compiler/compile/stages.h"
#include "core/kernel/beside.h"
#include "core/kernel/cancellation.h"
#include "loader/log/log.h"
#include "primitives/text/format.h"

namespace tenon::compiler {
namespace {

using graph::AwaitedKernels;
using graph::FusedLaunch;
using graph::Graph;

constexpr auto kLook = std::chrono::milliseconds(5);  // how often a waiting thread looks whether it is cancelled

std::string ops_of(const Graph& region) {
  std::string text;
  for (graph::NodeId id = region.first(); id != graph::kNoNode; id = region.next(id)) {
    if (region.node(id).op->form == OpForm::view) continue;
    text += (text.empty() ? "" : " ") + std::string(region.node(id).op->name);
  }
  return text;
}

ModuleText module_of(const std::string& name, const KernelText& text) {
  ModuleText module;
  module.dialect = text.dialect;
  module.name = name;
  module.text = text.text;
  KernelEntry& entry = module.entries.emplace_back();
  entry.name = text.entry;
  entry.buffer_count = text.buffer_count;
  entry.parameter_bytes = text.parameter_bytes;
  entry.shared_bytes = text.shared_bytes;
  entry.group = text.group;
  entry.flags = text.flags;
  return module;
}

// Whether another attempt may end otherwise.
bool is_passing(const Status& failed) {
  return failed.code() == Code::cancelled || failed.code() == Code::out_of_device_memory;
}

}  // namespace

// What runs beside. Where it is dropped without a run, the bucket is free again.
class FusedKernel::Job {
 public:
  Job(std::shared_ptr<FusedKernel> kernel, size_t bucket) : kernel_(std::move(kernel)), bucket_(bucket) {}
  ~Job() {
    if (kernel_ != nullptr) kernel_->end(bucket_, nullptr, Status(Code::cancelled, "The device ended."));
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void run() {
    try {
      std::exchange(kernel_, nullptr)->compile(bucket_);
    } catch (const Error&) {  // cancelled: the device or the program ends
    }
  }

 private:
  std::shared_ptr<FusedKernel> kernel_;
  const size_t bucket_;
};

FusedKernel::FusedKernel(const Graph& region, DeviceState* device) : device_(device), ops_(ops_of(region)) {
  try {
    make(region);
  } catch (const Error& error) {
    why_not_ = error.status().message();
  }
}

void FusedKernel::make(const Graph& region) {
  const std::optional<Dialect> dialect = dialect_for(device_, &why_not_);
  if (!dialect) return;
  dialect_ = dialect->info;
  KernelStages stages = kernel_stages(region, dialect_);
  dumped_ = dump_stages(region, stages);
  symbols_ = std::move(stages.symbols);
  artifact_ = std::move(stages.artifact);
  buckets_.resize(artifact_.variants.size());
}

std::shared_ptr<const FusedLaunch> FusedKernel::launch(const Graph& region, symbolic::Values* sizes,
                                                       const std::shared_ptr<AwaitedKernels>& awaited,
                                                       std::string* why_not) {
  if (!why_not_.empty()) {
    *why_not = why_not_;
    return nullptr;
  }
  std::vector<int64_t> parameters;
  for (const uint32_t symbol : symbols_) {
    parameters.push_back(value_or_throw(sizes->of(region.arena().symbol_at(symbol))));
  }
  const size_t number = value_or_throw(artifact_.choose(parameters));
  const Variant& variant = artifact_.variants[number];
  auto made = std::make_shared<FusedLaunch>();
  const auto items = static_cast<uint64_t>(value_or_throw(variant.items.run(parameters)));
  const Result<std::array<uint64_t, 3>> groups = groups_for(items, dialect_);
  if (!groups.ok() || items == 0) {
    *why_not = groups.ok() ? "it has no elements" : groups.status().message();
    return nullptr;
  }
  made->groups = groups.value();
  if (awaited != nullptr) {
    compile_later(number, awaited);
  } else {
    compile(number);
  }
  const std::lock_guard lock(mutex_);
  const Bucket& bucket = buckets_[number];
  if (bucket.module == nullptr) {
    *why_not = bucket.state == State::done ? bucket.why_not : "its kernel is not compiled yet";
    return nullptr;
  }
  made->of = shared_from_this();
  made->module = bucket.module;
  made->device = device_;
  made->parameters.resize(parameters.size() * sizeof(int64_t));
  if (!parameters.empty()) std::memcpy(made->parameters.data(), parameters.data(), made->parameters.size());
  made->ops = ops_;
  made->bucket = variant.name;
  return made;
}

void FusedKernel::compile(size_t number) {
  {
    std::unique_lock lock(mutex_);
    Bucket& bucket = buckets_[number];
    while (bucket.state == State::compiles) wait(number, &lock);
    const bool gone = bucket.module != nullptr && bucket.module->handle == nullptr;  // the device has ended since
    if (bucket.state == State::done && !gone) return;
    bucket.state = State::compiles;
  }
  const KernelText& text = artifact_.variants[number].text;
  std::shared_ptr<const CompiledModule> module;
  Result<std::shared_ptr<CompiledModule>> made = compile_module(device_, module_of(artifact_.name, text));
  if (made.ok()) module = std::move(made).value();
  const Status failed = made.status();
  end(number, module, failed);
  if (failed.code() == Code::cancelled && CancellationScope::cancelled_here()) throw Error(failed);
}

void FusedKernel::wait(size_t number, std::unique_lock<std::mutex>* lock) {
  changed_.wait_for(*lock, kLook, [&] { return buckets_[number].state != State::compiles; });
  if (CancellationScope::cancelled_here()) {
    throw Error(Code::cancelled, fmt::format("The program cancelled this: compiling {}.", artifact_.name));
  }
}

void FusedKernel::compile_later(size_t number, const std::shared_ptr<AwaitedKernels>& awaited) {
  {
    const std::lock_guard lock(mutex_);
    Bucket& bucket = buckets_[number];
    const bool gone = bucket.module != nullptr && bucket.module->handle == nullptr;
    if (bucket.state == State::done && !gone) return;
    awaited->asked.fetch_add(1);
    awaited->left.fetch_add(1);
    bucket.awaited.push_back(awaited);
    if (bucket.state == State::waits || bucket.state == State::compiles) return;
    bucket.module = nullptr;
    bucket.state = State::waits;
  }
  const auto job = std::make_shared<Job>(shared_from_this(), number);
  compile_beside(device_, [job] { job->run(); });
}

void FusedKernel::end(size_t number, std::shared_ptr<const CompiledModule> module, const Status& failed) {
  std::vector<std::shared_ptr<AwaitedKernels>> awaited;
  {
    const std::lock_guard lock(mutex_);
    Bucket& bucket = buckets_[number];
    bucket.module = std::move(module);
    bucket.why_not = failed.message();
    bucket.state = is_passing(failed) ? State::idle : State::done;
    awaited.swap(bucket.awaited);
    changed_.notify_all();
  }
  for (const std::shared_ptr<AwaitedKernels>& each : awaited) {
    if (failed.ok()) each->ready.fetch_add(1);
    each->left.fetch_sub(1, std::memory_order_release);
  }
  if (!failed.ok() && !is_passing(failed)) tell(number, failed);
}

// Once for a kernel: a device that has no compiler is no news, a text that its compiler refuses is.
void FusedKernel::tell(size_t number, const Status& failed) const {
  const bool refused = failed.code() == Code::invalid_argument;
  const loader::LogLevel level = refused ? loader::LogLevel::warning : loader::LogLevel::info;
  if (!loader::log_enabled(loader::LogTopic::compile, level)) return;
  const std::string where = dumped_.empty() ? "TENON_DUMP=FOLDER keeps its text"
                                            : fmt::format("its text is {}/{}", dumped_, text_file(artifact_, number));
  loader::log(loader::LogTopic::compile, level,
              fmt::format("{} ({}): {} Its ops run one by one; {}.", artifact_.name, ops_, failed.message(), where));
}

}  // namespace tenon::compiler
