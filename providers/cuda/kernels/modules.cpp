#include "providers/cuda/kernels/modules.h"

#include "providers/cuda/driver/driver.h"

#include TENON_CUDA_CODE_DIGEST

// The assembler embeds the fat binaries here.
#define TENON_FAMILY(value, family, code)                                                   \
  asm(".pushsection .rodata\n.balign 64\ntenon_cuda_code_" #family                          \
      ":\n"                                                                                 \
      ".incbin \"" TENON_CUDA_CODE_DIR "/" #family ".fatbin\"\n.balign 64\n.popsection\n"); \
  extern "C" __attribute__((visibility("hidden"))) const unsigned char tenon_cuda_code_##family[];
#include "providers/cuda/kernels/families.def"
#undef TENON_FAMILY

namespace tenon::provider::cuda {
namespace {

struct Code {
  const char* name;
  const void* bytes;
};
const Code codes[family_count] = {
#define TENON_FAMILY(value, name, code) {#name, tenon_cuda_code_##name},
#include "providers/cuda/kernels/families.def"
#undef TENON_FAMILY
};

}  // namespace

const void* family_code(Family family) { return codes[static_cast<size_t>(family)].bytes; }
const char* family_name(Family family) { return codes[static_cast<size_t>(family)].name; }

CUresult Modules::find(const Driver& driver, Family family, const char* name, CUfunction* out) {
  const std::lock_guard lock(mutex_);
  CUmodule& module = loaded_[static_cast<size_t>(family)];
  if (module == nullptr) {
    if (const CUresult result = driver.module_load_data(&module, family_code(family)); result != CUDA_SUCCESS) {
      module = nullptr;
      return result;
    }
  }
  return driver.module_get_function(out, module, name);
}

void Modules::release(const Driver& driver) {
  const std::lock_guard lock(mutex_);
  for (CUmodule& module : loaded_) {
    if (module != nullptr) driver.module_unload(module);
    module = nullptr;
  }
}

}  // namespace tenon::provider::cuda
