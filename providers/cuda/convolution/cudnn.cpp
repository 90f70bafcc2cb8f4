#include "providers/cuda/convolution/cudnn.h"

#include <fmt/core.h>

#include <array>

namespace tenon::provider::cuda {
namespace {

constexpr size_t needed_version = 90000;  // 9.0.0

// The last name is a path of NVIDIA's packages, for systems whose loader does not search that folder.
constexpr std::array cudnn_names = {"libcudnn.so.9", "/usr/local/cuda/lib64/libcudnn.so.9"};

// 9.1.0 for 90100; 8.9.7 for 8907
std::string library_version(size_t version) {
  const size_t major = version < needed_version ? 1000 : 10000;
  return fmt::format("{}.{}.{}", version / major, version % major / 100, version % 100);
}

}  // namespace

std::string Cudnn::load_library() {
  library_ = Library::open(cudnn_names);
  if (!library_.loaded()) return fmt::format("there is no cuDNN ({})", library_.failure());
  get_version = reinterpret_cast<decltype(get_version)>(library_.symbol("cudnnGetVersion"));
  const size_t version = get_version != nullptr ? get_version() : 0;
  if (version < needed_version) {
    return fmt::format("{} is cuDNN {}, and {} is needed", library_.name(), library_version(version),
                       library_version(needed_version));
  }
#define TENON_CUDNN(member, function, type)                                \
  member = reinterpret_cast<decltype(member)>(library_.symbol(#function)); \
  if (member == nullptr) return library_.name() + " has no function " #function;
#include "providers/cuda/convolution/functions.def"
#undef TENON_CUDNN
  return {};
}

const std::string& Cudnn::load() {
  std::call_once(loaded_, [this] { failure_ = load_library(); });
  return failure_;
}

const std::string& Cudnn::start() {
  if (!load().empty()) return failure_;
  std::call_once(started_, [this] {
    const cudnn::Status status = create(&handle_);
    if (status == cudnn::SUCCESS) return;
    handle_ = nullptr;
    start_failure_ = fmt::format("{} does not start: {}", library_.name(), get_error_string(status));
  });
  return start_failure_;
}

void Cudnn::release() {
  if (handle_ != nullptr) destroy(handle_);
  handle_ = nullptr;
}

}  // namespace tenon::provider::cuda
