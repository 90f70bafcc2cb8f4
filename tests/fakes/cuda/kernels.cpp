// The kernels of the provider as functions of this library, for cuLaunchKernel.
#include <dlfcn.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <memory>

#include "providers/cuda/kernels/arguments.h"
#include "providers/cuda/kernels/block.h"
#include "providers/cuda/kernels/device.h"
#include "providers/cuda/kernels/team.h"
#include "tests/fakes/cuda/fake.h"
#include "tests/fakes/cuda/fiber.h"

namespace tenon::fakes::cuda {

namespace provider = tenon::provider::cuda;

struct Kernel {
  std::string name;
  void (*function)(const void* arguments);
  size_t size;
  uint32_t team;  // number of threads that wait for each other; 0: the block
};

namespace {

size_t size_by_name(const std::string& name) {
  constexpr std::pair<const char*, size_t> sizes[] = {{"reduce_", sizeof(provider::ReduceArguments)},
                                                      {"softmax_", sizeof(provider::SoftmaxArguments)},
                                                      {"matmul_", sizeof(provider::MatmulArguments)},
                                                      {"gather_", sizeof(provider::IndexArguments)},
                                                      {"scatter_", sizeof(provider::IndexArguments)},
                                                      {"scan_", sizeof(provider::ScanArguments)},
                                                      {"pad_", sizeof(provider::PadArguments)},
                                                      {"arg_reduce_", sizeof(provider::ReduceArguments)},
                                                      {"norm_sums_", sizeof(provider::NormSumsArguments)},
                                                      {"norm_", sizeof(provider::NormArguments)},
                                                      {"layer_backward_", sizeof(provider::LayerBackwardArguments)},
                                                      {"batch_backward_", sizeof(provider::BatchBackwardArguments)},
                                                      {"batch_norm_", sizeof(provider::BatchNormArguments)},
                                                      {"pooling_backward_", sizeof(provider::PoolingBackwardArguments)},
                                                      {"pooling_", sizeof(provider::PoolingArguments)},
                                                      {"attention_", sizeof(provider::AttentionArguments)},
                                                      {"rotary_", sizeof(provider::RotaryArguments)},
                                                      {"random_", sizeof(provider::RandomArguments)},
                                                      {"sort_", sizeof(provider::SortArguments)},
                                                      {"one_hot_", sizeof(provider::OneHotArguments)},
                                                      {"nonzero_", sizeof(provider::NonzeroArguments)},
                                                      {"unique_", sizeof(provider::UniqueArguments)},
                                                      {"select_", sizeof(provider::PieceArguments)}};
  for (const auto& [prefix, size] : sizes) {
    if (name.starts_with(prefix)) return size;
  }
  return sizeof(provider::MapArguments);
}

uint32_t team_by_name(const std::string& name) {
  if (name.starts_with("attention_")) return 0;
  if (name.find("_warp") != std::string::npos) return provider::row_warp;
  return name.find("_block") != std::string::npos ? provider::row_block : 1;
}

// A kernel takes a reference to its own argument type. The call uses a function pointer with a generic type.
#if defined(__clang__)
__attribute__((no_sanitize("function")))
#endif
void call(const Kernel* kernel, const void* arguments) {
  kernel->function(arguments);
}

// The kernel of a text that this thread runs.
struct TextRun {
  const TextKernel* kernel = nullptr;
  Dims dims{};
};
thread_local TextRun text_run;

void take_place() {
  const provider::EmulatedThread& now = provider::emulated_thread;
  const uint32_t* const grid = text_run.dims.grid;
  const uint32_t* const block = text_run.dims.block;
  const auto thread = static_cast<uint32_t>(now.thread);
  const auto number = static_cast<uint32_t>(now.block);
  const uint32_t place[12] = {thread % block[0],
                              thread / block[0] % block[1],
                              thread / block[0] / block[1],
                              number % grid[0],
                              number / grid[0] % grid[1],
                              number / grid[0] / grid[1],
                              block[0],
                              block[1],
                              block[2],
                              grid[0],
                              grid[1],
                              grid[2]};
  text_run.kernel->place(place, [] {
    provider::emulated_meeting.wait();
    take_place();
  });
}

void run_text(const void* values) {
  take_place();
  text_run.kernel->call(static_cast<void* const*>(values));
}

// The threads of one team, each with its own stack. They take turns; each runs until it waits for the team or for its
// warp.
class TeamRun {
 public:
  void run(const Kernel* kernel, uint32_t team, const void* arguments, const provider::EmulatedThread& first) {
    kernel_ = kernel;
    arguments_ = arguments;
    first_ = first;
    provider::emulated_meeting.wait = [] { mine().pause(State::WAITS); };
    provider::emulated_block.wait = provider::emulated_meeting.wait;
    provider::emulated_block.wait_warp = [] { mine().pause(State::WAITS_FOR_WARP); };
    if (members_.size() < team) members_.resize(team);
    for (uint32_t i = 0; i < team; ++i) start(&members_[i]);
    do {
      for (uint32_t i = 0; i < team; i += provider::row_warp) {
        if (!run_warp(i, std::min<uint32_t>(team, i + provider::row_warp))) return part();
      }
      for (uint32_t i = 1; i < team; ++i) {
        if (members_[i].state != members_[0].state) return part();
      }
    } while (members_[0].state != State::DONE);
  }
  static TeamRun& mine() {
    static thread_local TeamRun run;
    return run;
  }

 private:
  enum class State : uint8_t { RUNS, WAITS, WAITS_FOR_WARP, DONE };
  struct Member {
    Fiber fiber;
    State state = State::RUNS;
  };

  void part() const { control().violate("threads of a team part at a barrier: " + kernel_->name); }
  // Resumes the members from `begin` on until they wait for the team or are done. Returns false if they do not all do
  // the same.
  bool run_warp(uint32_t begin, uint32_t end) {
    do {
      for (uint32_t i = begin; i < end; ++i) resume(i);
      for (uint32_t i = begin + 1; i < end; ++i) {
        if (members_[i].state != members_[begin].state) return false;
      }
    } while (members_[begin].state == State::WAITS_FOR_WARP);
    return true;
  }

  static void start(Member* member) {
    member->state = State::RUNS;
    member->fiber.prepare([] { mine().whole(); });
  }
  void whole() {
    call(kernel_, arguments_);
    pause(State::DONE);
  }
  void pause(State state) {
    members_[current_].state = state;
    members_[current_].fiber.switch_to(&scheduler_);
  }
  void resume(uint32_t member) {
    current_ = member;
    provider::emulated_thread = first_;
    provider::emulated_thread.thread += member;
    scheduler_.switch_to(&members_[member].fiber);
  }

  const Kernel* kernel_ = nullptr;
  const void* arguments_ = nullptr;
  provider::EmulatedThread first_;
  std::vector<Member> members_;
  Fiber scheduler_;
  uint32_t current_ = 0;
};

provider::Chunk16<unsigned char> nan_bytes() {
  provider::Chunk16<unsigned char> bytes;
  std::memset(bytes.at, 0xff, sizeof bytes.at);
  return bytes;
}

}  // namespace

const Kernel* find_kernel(const char* name) {
  static auto* mutex = new std::mutex;
  static auto* known = new std::map<std::string, std::unique_ptr<Kernel>>;
  const std::lock_guard lock(*mutex);
  std::unique_ptr<Kernel>& kernel = (*known)[name];
  if (kernel != nullptr) return kernel.get();
  Dl_info here;
  if (dladdr(reinterpret_cast<void*>(&find_kernel), &here) == 0) return nullptr;
  void* library = dlopen(here.dli_fname, RTLD_NOW | RTLD_NOLOAD);
  if (library == nullptr) return nullptr;
  void* symbol = dlsym(library, name);
  dlclose(library);
  if (symbol == nullptr) return nullptr;
  const std::string text = name;
  kernel = std::make_unique<Kernel>(
      Kernel{text, reinterpret_cast<void (*)(const void*)>(symbol), size_by_name(text), team_by_name(text)});
  return kernel.get();
}

const char* name_of(const Kernel* kernel) { return kernel->name.c_str(); }
size_t argument_size(const Kernel* kernel) { return kernel->size; }

void run_kernel(const Kernel* kernel, uint64_t grid, uint32_t block, uint32_t shared, const void* arguments) {
  const uint32_t team = kernel->team == 0 ? block : kernel->team;
  std::vector<provider::Chunk16<unsigned char>> memory((shared + 15) / 16);
  for (uint64_t i = 0; i < grid; ++i) {
    std::fill(memory.begin(), memory.end(), nan_bytes());
    provider::emulated_block.shared = memory.empty() ? nullptr : memory[0].at;
    for (uint32_t thread = 0; thread < block; thread += team) {
      const provider::EmulatedThread first = {thread, block, static_cast<int64_t>(i), static_cast<int64_t>(grid)};
      if (team > 1) {
        TeamRun::mine().run(kernel, team, arguments, first);
      } else {
        provider::emulated_thread = first;
        call(kernel, arguments);
      }
    }
  }
}

void run_text_kernel(const TextKernel& kernel, const Dims& dims, void* const* values) {
  text_run = {&kernel, dims};
  const uint32_t threads = dims.block[0] * dims.block[1] * dims.block[2];
  const Kernel team{kernel.name, run_text, 0, threads};
  run_kernel(&team, uint64_t{dims.grid[0]} * dims.grid[1] * dims.grid[2], threads, 0, values);
}

}  // namespace tenon::fakes::cuda
