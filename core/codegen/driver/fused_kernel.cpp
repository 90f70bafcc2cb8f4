#include "core/codegen/driver/fused_kernel.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <utility>

#include "core/background/background.h"
#include "core/background/cancellation.h"
#include "core/codegen/driver/stages.h"
#include "core/codegen/tune/tune.h"
#include "loader/log/log.h"
#include "loader/settings/settings.h"
#include "primitives/text/format.h"

namespace tenon::codegen {
namespace {

using graph::AwaitedKernels;
using graph::FusedLaunch;
using graph::Graph;

constexpr uint64_t kMostBeside = uint64_t{256} << 20;  // most bytes of buffers for tuning in the background
constexpr auto kLook = std::chrono::milliseconds(5);   // how often a waiting thread checks for cancellation

std::string ops_of(const Graph& region) {
  std::string text;
  for (graph::NodeId id = region.first(); id != graph::kNoNode; id = region.next(id)) {
    if (region.node(id).op->form == OpForm::view) continue;
    text += (text.empty() ? "" : " ") + std::string(region.node(id).op->name);
  }
  return text;
}

// True if another attempt may succeed.
bool is_passing(const Status& failed) {
  return failed.code() == Code::cancelled || failed.code() == Code::out_of_device_memory;
}

}  // namespace

// A compilation in the background. If it is dropped before it runs, its destructor frees the bucket again.
class FusedKernel::Job {
 public:
  Job(std::shared_ptr<FusedKernel> kernel, size_t bucket) : kernel_(std::move(kernel)), bucket_(bucket) {}
  ~Job() {
    if (kernel_ != nullptr) kernel_->end(bucket_, nullptr, Status(Code::cancelled, "The device was closed."));
  }
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  void run() {
    try {
      std::exchange(kernel_, nullptr)->compile(bucket_);
    } catch (const Error&) {  // cancelled: the device or the process is ending
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
  std::optional<Dialect> dialect = dialect_for(device_, &why_not_);
  if (!dialect) return;
  dialect_ = std::move(*dialect);
  const bool tunes = loader::settings().tune != loader::Tune::off;
  const auto kept = [this](const Kernel& kernel) { return kept_tiles(device_, dialect_, kernel); };
  KernelStages stages = tunes ? kernel_stages(region, dialect_.info, kept) : kernel_stages(region, dialect_.info);
  if (tunes) plain_ = std::move(stages.kernel);
  dumped_ = dump_stages(region, stages);
  symbols_ = std::move(stages.symbols);
  artifact_ = std::move(stages.artifact);
  buckets_.resize(artifact_.variants.size());
}

bool FusedKernel::lay_out(const Variant& variant, const std::vector<int64_t>& parameters, FusedLaunch* launch,
                          std::string* why_not) const {
  const auto items = static_cast<uint64_t>(value_or_throw(variant.items.run(parameters)));
  const Result<std::array<uint64_t, 3>> groups = groups_for(items, dialect_.info);
  if (!groups.ok() || items == 0) {
    *why_not = groups.ok() ? "it has no elements" : groups.status().message();
    return false;
  }
  launch->groups = groups.value();
  return true;
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
  const size_t number = awaited == nullptr ? compile_now(parameters) : compile_later(parameters, awaited);
  auto made = std::make_shared<FusedLaunch>();
  if (!lay_out(artifact_.variants[number], parameters, made.get(), why_not)) return nullptr;
  const std::lock_guard lock(mutex_);
  Bucket& bucket = buckets_[number];
  if (bucket.module == nullptr) {
    *why_not = bucket.state == State::done ? bucket.why_not : "its kernel is not compiled yet";
    return nullptr;
  }
  const Variant& variant = bucket.tuned != nullptr ? *bucket.tuned : artifact_.variants[number];
  if (bucket.tuned != nullptr && !lay_out(variant, parameters, made.get(), why_not)) return nullptr;
  if (plain_) {
    bucket.launched = parameters;
    tune_later(number);
  }
  if (!(variant.tiles == Tiles())) made->tiles = tiles_text(variant.tiles);
  made->of = shared_from_this();
  made->module = bucket.module;
  made->device = device_;
  made->parameters.resize(parameters.size() * sizeof(int64_t));
  if (!parameters.empty()) std::memcpy(made->parameters.data(), parameters.data(), made->parameters.size());
  made->ops = ops_;
  made->bucket = variant.name;
  made->is_map = variant.map.is_map;
  made->over = variant.map.over;
  return made;
}

void FusedKernel::compile(size_t number) {
  {
    std::unique_lock lock(mutex_);
    Bucket& bucket = buckets_[number];
    while (bucket.state == State::compiles) wait(number, &lock);
    // the device has been closed since
    const bool gone = bucket.module != nullptr && bucket.module->handle == nullptr;
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

size_t FusedKernel::compile_now(const std::vector<int64_t>& parameters) {
  const size_t number = artifact_.choose(parameters), general = artifact_.general(parameters);
  compile(number);
  if (!is_refused(number)) return number;
  compile(general);
  return general;
}

// Compiles the general text first, because it also serves sizes of other buckets.
size_t FusedKernel::compile_later(const std::vector<int64_t>& parameters,
                                  const std::shared_ptr<AwaitedKernels>& awaited) {
  const size_t number = artifact_.choose(parameters), general = artifact_.general(parameters);
  if (is_there(number)) return number;
  const bool general_first = is_refused(number) || !(is_there(general) || is_refused(general));
  compile_later(general_first ? general : number, awaited);
  return general;
}

bool FusedKernel::is_there(size_t number) {
  const std::lock_guard lock(mutex_);
  const std::shared_ptr<const CompiledModule>& module = buckets_[number].module;
  return module != nullptr && module->handle != nullptr;
}

bool FusedKernel::is_refused(size_t number) {
  const std::lock_guard lock(mutex_);
  return buckets_[number].state == State::done && buckets_[number].module == nullptr;
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
  compile_in_background(device_, [job] { job->run(); });
}

void FusedKernel::end(size_t number, std::shared_ptr<const CompiledModule> module, const Status& failed) {
  std::vector<std::shared_ptr<AwaitedKernels>> awaited;
  {
    const std::lock_guard lock(mutex_);
    Bucket& bucket = buckets_[number];
    bucket.module = std::move(module);
    bucket.tuned = nullptr;
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

void FusedKernel::tune_later(size_t number) {
  Bucket& bucket = buckets_[number];
  if (bucket.asked_to_tune || loader::settings().tune != loader::Tune::on) return;
  bucket.asked_to_tune = true;
  if (is_tuned(device_, dialect_, *plain_, artifact_.variants[number].name)) return;
  tune_in_background(device_, [kernel = shared_from_this(), number, parameters = *bucket.launched] {
    kernel->tune_now(number, parameters);
  });
}

TuneRequest FusedKernel::tune_request(size_t number, const std::vector<int64_t>& parameters) const {
  TuneRequest request;
  request.device = device_;
  request.dialect = &dialect_;
  request.kernel = &*plain_;
  request.variant = artifact_.variants[number].name;
  request.parameters = parameters;
  return request;
}

// Programs that are prepared later launch the better text, which gives the same results.
void FusedKernel::tune_now(size_t number, const std::vector<int64_t>& parameters) {
  TuneRequest request = tune_request(number, parameters);
  request.most_bytes = kMostBeside;
  request.wait = [this] { return wait_until_spare(device_); };
  const Result<Found> found = tune(request);
  if (!found.ok() || !found->better()) return;
  const Result<Artifact> artifact = make_artifact(*plain_, {}, dialect_.info, kept_tiles(device_, dialect_, *plain_));
  if (!artifact.ok() || artifact->variants.size() != artifact_.variants.size()) return;
  auto variant = std::make_shared<const Variant>(artifact->variants[number]);
  Result<std::shared_ptr<CompiledModule>> made = compile_module(device_, module_of(artifact_.name, variant->text));
  if (!made.ok()) return;
  const std::lock_guard lock(mutex_);
  Bucket& bucket = buckets_[number];
  if (bucket.module == nullptr || bucket.module->handle == nullptr) return;
  bucket.module = std::move(made).value();
  bucket.tuned = std::move(variant);
}

size_t FusedKernel::launched_buckets() {
  const std::lock_guard lock(mutex_);
  return static_cast<size_t>(std::count_if(buckets_.begin(), buckets_.end(),
                                           [](const Bucket& bucket) { return bucket.launched.has_value(); }));
}

std::vector<TunedKernel> FusedKernel::tune_buckets(double seconds) {
  std::vector<TunedKernel> all;
  for (size_t number = 0; plain_ && number < buckets_.size(); ++number) {
    std::optional<std::vector<int64_t>> parameters;
    {
      const std::lock_guard lock(mutex_);
      parameters = buckets_[number].launched;
    }
    if (!parameters) continue;
    TuneRequest request = tune_request(number, *parameters);
    request.seconds = seconds;
    const Result<Found> found = tune(request);
    TunedKernel& each = all.emplace_back();
    each.name = artifact_.name;
    each.ops = ops_;
    each.bucket = request.variant;
    each.sizes = *parameters;
    if (!found.ok()) {
      if (found.status().code() == Code::cancelled || found.status().code() == Code::device_lost) {
        throw Error(found.status());
      }
      each.why_not = found.status().message();
      continue;
    }
    each.tiles = tiles_text(found->tiles);
    each.default_us = 1e6 * found->default_seconds;
    each.best_us = 1e6 * found->best_seconds;
    each.tried = found->tried;
    each.kept = found->kept;
  }
  return all;
}

// Logs once per bucket that its compiler refuses the text, hangs or dies.
void FusedKernel::tell(size_t number, const Status& failed) const {
  const std::string where = dumped_.empty() ? "TENON_DUMP=FOLDER keeps its text"
                                            : fmt::format("its text is {}/{}", dumped_, text_file(artifact_, number));
  loader::log(loader::LogTopic::compile, loader::LogLevel::warning,
              fmt::format("{} ({}): {} Its ops run one by one; {}.", artifact_.name, ops_, failed.message(), where));
}

}  // namespace tenon::codegen
