// cuLaunchKernel's other half: the provider's kernels as functions of this library.
#include <dlfcn.h>

#include <cstring>
#include <map>
#include <memory>

#include "providers/cuda/kernels/arguments.h"
#include "providers/cuda/kernels/device.h"
#include "tests/fakes/cuda/fake.h"

namespace tenon::fakes::cuda {

namespace provider = tenon::provider::cuda;

struct Kernel {
  std::string name;
  void (*function)(const void* arguments);
  size_t size;
  bool has_teams;
};

namespace {

size_t size_by_name(const std::string& name) {
  if (name.starts_with("reduce_")) return sizeof(provider::ReduceArguments);
  if (name.starts_with("softmax_")) return sizeof(provider::SoftmaxArguments);
  if (name.starts_with("matmul_")) return sizeof(provider::MatmulArguments);
  return sizeof(provider::MapArguments);
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
  const bool has_teams = text.starts_with("reduce_") || text.starts_with("softmax_");
  kernel = std::make_unique<Kernel>(
      Kernel{text, reinterpret_cast<void (*)(const void*)>(symbol), size_by_name(text), has_teams});
  return kernel.get();
}

const char* name_of(const Kernel* kernel) { return kernel->name.c_str(); }
size_t argument_size(const Kernel* kernel) { return kernel->size; }

// A kernel takes a reference to arguments of its own type, which is called here as a pointer to any.
#if defined(__clang__)
__attribute__((no_sanitize("function")))
#endif
void run_kernel(const Kernel* kernel, uint64_t grid, uint32_t block, const void* arguments) {
  const uint32_t threads = kernel->has_teams ? 1 : block;
  for (uint64_t i = 0; i < grid; ++i) {
    for (uint32_t thread = 0; thread < threads; ++thread) {
      provider::emulated_thread = {thread, threads, static_cast<int64_t>(i), static_cast<int64_t>(grid)};
      kernel->function(arguments);
    }
  }
}

}  // namespace tenon::fakes::cuda
