// The kernels of the provider as functions of this library, for cuLaunchKernel.
#include <dlfcn.h>
#include <ucontext.h>

#include <cstring>
#include <map>
#include <memory>

#include "providers/cuda/kernels/arguments.h"
#include "providers/cuda/kernels/device.h"
#include "providers/cuda/kernels/team.h"
#include "tests/fakes/cuda/fake.h"

namespace tenon::fakes::cuda {

namespace provider = tenon::provider::cuda;

struct Kernel {
  std::string name;
  void (*function)(const void* arguments);
  size_t size;
  uint32_t team;  // threads that wait for each other
};

namespace {

size_t size_by_name(const std::string& name) {
  constexpr std::pair<const char*, size_t> sizes[] = {
      {"reduce_", sizeof(provider::ReduceArguments)},   {"softmax_", sizeof(provider::SoftmaxArguments)},
      {"matmul_", sizeof(provider::MatmulArguments)},   {"gather_", sizeof(provider::IndexArguments)},
      {"scatter_", sizeof(provider::IndexArguments)},   {"scan_", sizeof(provider::ScanArguments)},
      {"pad_", sizeof(provider::PadArguments)},         {"arg_reduce_", sizeof(provider::ReduceArguments)},
      {"norm_", sizeof(provider::NormArguments)},       {"batch_norm_", sizeof(provider::BatchNormArguments)},
      {"pooling_", sizeof(provider::PoolingArguments)}, {"random_", sizeof(provider::RandomArguments)},
      {"sort_", sizeof(provider::SortArguments)},       {"one_hot_", sizeof(provider::OneHotArguments)},
      {"nonzero_", sizeof(provider::NonzeroArguments)}, {"unique_", sizeof(provider::UniqueArguments)},
      {"select_", sizeof(provider::PieceArguments)}};
  for (const auto& [prefix, size] : sizes) {
    if (name.starts_with(prefix)) return size;
  }
  return sizeof(provider::MapArguments);
}

uint32_t team_by_name(const std::string& name) {
  if (name.find("_warp") != std::string::npos) return provider::row_warp;
  return name.find("_block") != std::string::npos ? provider::row_block : 1;
}

// A kernel takes a reference to its own argument type. The call goes through a pointer to any type.
#if defined(__clang__)
__attribute__((no_sanitize("function")))
#endif
void call(const Kernel* kernel, const void* arguments) {
  kernel->function(arguments);
}

// The text kernel that this thread runs.
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

// The C library's function, not the wrapper of the address sanitizer: that one complains on standard error that it does
// not support the call.
template <class Function>
Function from_libc(const char* name) {
  static void* library = dlopen("libc.so.6", RTLD_NOW | RTLD_NOLOAD);
  return reinterpret_cast<Function>(dlsym(library, name));
}
int switch_context(ucontext_t* from, const ucontext_t* to) {
  static const auto function = from_libc<decltype(&swapcontext)>("swapcontext");
  return function(from, to);
}

// The threads of one team, each with its own stack. They take turns; each runs until it waits for the others.
class TeamRun {
 public:
  void run(const Kernel* kernel, const void* arguments, const provider::EmulatedThread& first) {
    kernel_ = kernel;
    arguments_ = arguments;
    provider::emulated_meeting.wait = [] { mine().pause(); };
    if (members_.size() < kernel->team) members_.resize(kernel->team);
    for (uint32_t i = 0; i < kernel->team; ++i) start(&members_[i]);
    first_ = first;
    left_ = kernel->team;
    while (left_ > 0) {
      const uint32_t before = left_;
      take_turn(&scheduler_, 0);
      if (left_ != 0 && left_ != before)
        return control().violate("threads of a team part at a barrier: " + kernel->name);
    }
  }
  static TeamRun& mine() {
    static thread_local TeamRun run;
    return run;
  }

 private:
  static constexpr size_t stack_bytes = 128 * 1024;
  struct Member {
    std::unique_ptr<char[]> stack;
    ucontext_t context;
    bool done = false;
  };

  static void start(Member* member) {
    if (member->stack == nullptr) member->stack.reset(new char[stack_bytes]);
    getcontext(&member->context);
    member->context.uc_stack.ss_sp = member->stack.get();
    member->context.uc_stack.ss_size = stack_bytes;
    member->context.uc_link = nullptr;
    member->done = false;
    static const auto make = from_libc<decltype(&makecontext)>("makecontext");
    make(
        &member->context, [] { mine().whole(); }, 0);
  }
  void whole() {
    call(kernel_, arguments_);
    members_[current_].done = true;
    --left_;
    pause();
  }
  // The next thread of the team goes on; after the last one, the scheduler.
  void pause() { take_turn(&members_[current_].context, current_ + 1); }
  void take_turn(ucontext_t* from, uint32_t next) {
    while (next < kernel_->team && members_[next].done) ++next;
    if (next == kernel_->team) return static_cast<void>(switch_context(from, &scheduler_));
    current_ = next;
    provider::emulated_thread = first_;
    provider::emulated_thread.thread += next;
    switch_context(from, &members_[next].context);
  }

  const Kernel* kernel_ = nullptr;
  const void* arguments_ = nullptr;
  std::vector<Member> members_;
  ucontext_t scheduler_;
  provider::EmulatedThread first_;
  uint32_t current_ = 0;
  uint32_t left_ = 0;  // threads that have not ended
};

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

void run_kernel(const Kernel* kernel, uint64_t grid, uint32_t block, const void* arguments) {
  for (uint64_t i = 0; i < grid; ++i) {
    for (uint32_t thread = 0; thread < block; thread += kernel->team) {
      const provider::EmulatedThread first = {thread, block, static_cast<int64_t>(i), static_cast<int64_t>(grid)};
      if (kernel->team > 1) {
        TeamRun::mine().run(kernel, arguments, first);
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
  run_kernel(&team, uint64_t{dims.grid[0]} * dims.grid[1] * dims.grid[2], threads, values);
}

}  // namespace tenon::fakes::cuda
