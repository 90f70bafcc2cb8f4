// Tenon's convolutions as a guest that prints a number made from all bits of their results, and the number of threads.
#include <tenon/tenon.h>

#include <bit>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <vector>

namespace {

tenon::Tensor filled(const tenon::Dims& dims, uint64_t seed) {
  int64_t count = 1;
  for (int64_t dim : dims) count *= dim;
  std::vector<float> values(static_cast<size_t>(count));
  for (float& value : values) {
    seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    value = static_cast<float>(static_cast<int64_t>(seed >> 40)) / static_cast<float>(1 << 23) - 1;
  }
  return tenon::Tensor::from<float>(values, dims, tenon::Device("cpu"));
}

}  // namespace

extern "C" __attribute__((visibility("default"))) int coexist_run() {
  try {
    const tenon::Tensor dense = tenon::conv2d(filled({2, 16, 20, 20}, 1), filled({32, 16, 3, 3}, 2), filled({32}, 3));
    const tenon::Tensor grouped =
        tenon::conv2d(filled({1, 24, 15, 15}, 4), filled({24, 1, 3, 3}, 5), {}, {2}, {1}, {1}, 24);
    const tenon::Tensor pointwise = tenon::conv2d(filled({1, 5, 9, 9}, 8), filled({5, 5, 1, 1}, 9));
    const tenon::Tensor odd = tenon::conv2d(filled({1, 3, 40, 40}, 10), filled({7, 3, 5, 5}, 11));
    const tenon::Tensor product = tenon::matmul(filled({300, 200}, 6), filled({200, 260}, 7));
    const tenon::Tensor wide = tenon::conv2d(filled({4, 64, 56, 56}, 12), filled({64, 64, 3, 3}, 13));
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (const tenon::Tensor& tensor : {dense, grouped, pointwise, odd, product, wide}) {
      for (float value : tensor.to_host<float>()) {
        hash = (hash ^ std::bit_cast<uint32_t>(value)) * UINT64_C(0x100000001b3);
      }
    }
    std::printf("bits %016llx\n", static_cast<unsigned long long>(hash));
    const auto threads = std::distance(std::filesystem::directory_iterator("/proc/self/task"), {});
    std::printf("threads %td\n", threads);
    return 0;
  } catch (const tenon::Error& error) {
    std::printf("%s\n", error.what());
    return 1;
  }
}
