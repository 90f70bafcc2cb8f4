#include "providers/cpu/modules/helper/options.h"

namespace tenon::provider::helper {

std::vector<std::string> code_options(uint32_t vector_bytes) {
  std::vector<std::string> options = {"-std=gnu11",
                                      "-O2",
                                      "-fPIC",
                                      "-ffp-contract=off",
                                      "-fno-fast-math",
                                      "-fno-math-errno",
                                      "-fno-trapping-math",
                                      "-fwrapv",
                                      "-fno-strict-aliasing",
                                      "-fno-ident",
                                      "-fno-asynchronous-unwind-tables",
                                      "-fno-stack-protector",
                                      "-Wno-psabi"};
#if defined(__x86_64__)
  // Highway's targets correspond to levels of the x86-64 psABI. By default compilers use half of the widest registers.
  if (vector_bytes == 32) options.insert(options.end(), {"-march=x86-64-v3"});
  if (vector_bytes == 64) options.insert(options.end(), {"-march=x86-64-v4", "-mprefer-vector-width=512"});
#else
  static_cast<void>(vector_bytes);
#endif
  return options;
}

}  // namespace tenon::provider::helper
