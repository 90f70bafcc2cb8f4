// Modules and launches. The fat binaries of the provider stand for the kernels of kernels.cpp. A shared object that the
// fake NVRTC compiled from a text is loaded.
#include <dlfcn.h>
#include <elf.h>
#include <fmt/core.h>

#include <atomic>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>

#include "tests/fakes/cuda/fake.h"
#include "tests/fakes/cuda/stream.h"
#include "tests/unit/scratch_folder.h"

using tenon::fakes::cuda::control;
using tenon::fakes::cuda::Dims;
using tenon::fakes::cuda::Kernel;
using tenon::fakes::cuda::TextKernel;

struct CUfunc_st {
  const Kernel* kernel = nullptr;  // a kernel of the provider; otherwise `text` is set
  TextKernel text{};
  std::atomic<uint32_t> most_shared{48 << 10};  // most shared bytes that a launch may give a block
};

struct CUmod_st {
  void* library = nullptr;  // the library that was compiled from a text
  std::map<std::string, std::unique_ptr<CUfunc_st>> functions;
};

namespace {

// The size of the shared object at `image`; 0: it is not one for this processor. The section headers are at its end.
size_t library_bytes(const void* image) {
  Elf64_Ehdr head{};
  std::memcpy(head.e_ident, image, SELFMAG);
  if (std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return 0;
  std::memcpy(&head, image, sizeof head);
  const bool ours = head.e_type == ET_DYN && (head.e_machine == EM_X86_64 || head.e_machine == EM_AARCH64);
  return ours ? head.e_shoff + size_t{head.e_shnum} * head.e_shentsize : 0;
}

void* load(const void* image, size_t bytes) {
  const tenon::ScratchFolder folder;
  const std::string path = folder.write("kernel.so", std::string(static_cast<const char*>(image), bytes));
  return dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
}

template <class Function>
bool find(void* library, const std::string& name, Function* out) {
  *out = reinterpret_cast<Function>(dlsym(library, name.c_str()));
  return *out != nullptr;
}

// The functions that nvrtc.cpp has added for the entry `name`.
bool find_text(void* library, const char* name, TextKernel* out) {
  out->name = name;
  return find(library, fmt::format("fake_count_{}", name), &out->count) &&
         find(library, fmt::format("fake_size_{}", name), &out->size) &&
         find(library, fmt::format("fake_call_{}", name), &out->call) && find(library, "fake_place", &out->place);
}

// A launch of a text's kernel, with copies of the arguments.
struct TextLaunch {
  TextKernel kernel;
  Dims dims;
  std::vector<std::vector<unsigned char>> values;

  void operator()() const {
    std::vector<void*> places;
    for (const auto& value : values) places.push_back(const_cast<unsigned char*>(value.data()));
    run_text_kernel(kernel, dims, places.data());
  }
};

bool is_possible(const Dims& dims) {
  const auto fits = [](uint32_t number, uint32_t most) { return number >= 1 && number <= most; };
  return fits(dims.grid[0], 0x7fffffffU) && fits(dims.grid[1], 65535) && fits(dims.grid[2], 65535) &&
         fits(dims.block[0], 1024) && fits(dims.block[1], 1024) && fits(dims.block[2], 64) &&
         uint64_t{dims.block[0]} * dims.block[1] * dims.block[2] <= 1024;
}

}  // namespace

FAKE_API CUresult cuModuleLoadData(CUmodule* module, const void* image) {
  FAKE_ENTER(true);
  if (const int failure = control().fail_module.exchange(0); failure != 0) return static_cast<CUresult>(failure);
  auto made = std::make_unique<CUmod_st>();
  if (const size_t bytes = library_bytes(image); bytes != 0) {
    made->library = load(image, bytes);
    if (made->library == nullptr) return CUDA_ERROR_INVALID_IMAGE;
  }
  *module = made.release();
  ++control().objects;
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuModuleUnload(CUmodule module) {
  if (module->library != nullptr) dlclose(module->library);
  delete module;
  --control().objects;
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  FAKE_ENTER(true);
  static auto* mutex = new std::mutex;
  const std::lock_guard lock(*mutex);
  std::unique_ptr<CUfunc_st>& known = module->functions[name];
  if (known == nullptr) {
    auto made = std::make_unique<CUfunc_st>();
    if (module->library == nullptr) made->kernel = tenon::fakes::cuda::find_kernel(name);
    const bool found =
        module->library == nullptr ? made->kernel != nullptr : find_text(module->library, name, &made->text);
    if (!found) return CUDA_ERROR_NOT_FOUND;
    known = std::move(made);
  }
  *function = known.get();
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuFuncGetAttribute(int* value, CUfunction_attribute which, CUfunction) {
  FAKE_ENTER(true);
  *value = which == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 1024 : which == CU_FUNC_ATTRIBUTE_NUM_REGS ? 32 : 0;
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute which, int value) {
  FAKE_ENTER(true);
  int most = 0;
  cuDeviceGetAttribute(&most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 0);
  if (which != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES || value < 0 || value > most)
    return CUDA_ERROR_INVALID_VALUE;
  function->most_shared = static_cast<uint32_t>(value);
  return CUDA_SUCCESS;
}
FAKE_API CUresult cuOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, CUfunction, int threads, size_t) {
  FAKE_ENTER(true);
  *blocks = 2048 / threads;
  return CUDA_SUCCESS;
}

FAKE_API CUresult cuLaunchKernel(CUfunction function, unsigned int grid, unsigned int grid_y, unsigned int grid_z,
                                 unsigned int block, unsigned int block_y, unsigned int block_z, unsigned int shared,
                                 CUstream stream, void** parameters, void**) {
  FAKE_ENTER(true);
  FAKE_HERE(stream);
  if (const int failure = control().fail_launch.exchange(0); failure != 0) return static_cast<CUresult>(failure);
  const Dims dims = {{grid, grid_y, grid_z}, {block, block_y, block_z}};
  if (!is_possible(dims) || shared > function->most_shared) return CUDA_ERROR_INVALID_VALUE;
  control().launches.fetch_add(1);
  if (function->kernel == nullptr) {
    TextLaunch launch{function->text, dims, {}};
    for (uint32_t i = 0; i < launch.kernel.count(); ++i) {
      const auto* bytes = static_cast<const unsigned char*>(parameters[i]);
      launch.values.emplace_back(bytes, bytes + launch.kernel.size(i));
    }
    if (control().record)
      control().note(
          {launch.kernel.name, grid, block, launch.values.empty() ? std::vector<unsigned char>() : launch.values[0]});
    if (control().run_kernels) stream->push(std::move(launch));
    return CUDA_SUCCESS;
  }
  if (grid_y * grid_z * block_y * block_z != 1) return CUDA_ERROR_INVALID_VALUE;
  const Kernel* kernel = function->kernel;
  const auto* bytes = static_cast<const unsigned char*>(parameters[0]);
  std::vector<unsigned char> arguments(bytes, bytes + argument_size(kernel));
  if (control().record) control().note({name_of(kernel), grid, block, arguments});
  if (!control().run_kernels) return CUDA_SUCCESS;
  stream->push([=, arguments = std::move(arguments)] { run_kernel(kernel, grid, block, shared, arguments.data()); });
  return CUDA_SUCCESS;
}
