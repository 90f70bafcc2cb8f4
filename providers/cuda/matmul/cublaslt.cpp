#include "providers/cuda/matmul/cublaslt.h"

#include <fmt/core.h>

#include <cuda.h>

#include <array>

namespace tenon::provider::cuda {
namespace {

constexpr size_t needed_version = 120000;  // 12.0

// The names of the library: first the version of our toolkit, then the other one. The last names are paths of NVIDIA's
// packages, for systems whose loader does not search there.
#if CUDA_VERSION >= 13000
constexpr std::array cublaslt_names = {"libcublasLt.so.13", "libcublasLt.so.12",
                                       "/usr/local/cuda/lib64/libcublasLt.so.13"};
#else
constexpr std::array cublaslt_names = {"libcublasLt.so.12", "libcublasLt.so.13",
                                       "/usr/local/cuda/lib64/libcublasLt.so.12"};
#endif

// 12.4.5 for 120405
std::string library_version(size_t version) {
  return fmt::format("{}.{}.{}", version / 10000, version / 100 % 100, version % 100);
}

}  // namespace

std::string CublasLt::load_library() {
  library_ = Library::open(cublaslt_names);
  if (!library_.loaded()) {
    return fmt::format("there is no cuBLASLt ({})", library_.failure());
  }
  get_version = reinterpret_cast<decltype(get_version)>(library_.symbol("cublasLtGetVersion"));
  const size_t version = get_version != nullptr ? get_version() : 0;
  if (version < needed_version) {
    return fmt::format("{} is cuBLASLt {}, and {} is needed", library_.name(), library_version(version),
                       library_version(needed_version));
  }
#define TENON_CUBLASLT(member, function)                                   \
  member = reinterpret_cast<decltype(member)>(library_.symbol(#function)); \
  if (member == nullptr) return library_.name() + " has no function " #function;
#include "providers/cuda/matmul/functions.def"
#undef TENON_CUBLASLT
  const cublasStatus_t status = create(&handle_);
  if (status == CUBLAS_STATUS_SUCCESS) return {};
  handle_ = nullptr;
  return fmt::format("{} does not start: {}", library_.name(), get_status_string(status));
}

const std::string& CublasLt::load() {
  std::call_once(once_, [this] { failure_ = load_library(); });
  return failure_;
}

void CublasLt::release() {
  if (handle_ != nullptr) destroy(handle_);
  handle_ = nullptr;
}

}  // namespace tenon::provider::cuda
