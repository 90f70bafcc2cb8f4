// Tenon as a guest: a matmul large enough for every thread and a softmax, both compared with plain loops, and a model,
// because other guests contain readers of ONNX too.
#include <tenon/onnx.h>
#include <tenon/tenon.h>

#include <cmath>
#include <cstdio>
#include <vector>

extern "C" __attribute__((visibility("default"))) int coexist_run() {
  try {
    constexpr int64_t n = 160;
    std::vector<float> a(n * n), b(n * n);
    for (int64_t i = 0; i < n * n; i++) {
      a[static_cast<size_t>(i)] = static_cast<float>((i * 7) % 13 - 6);
      b[static_cast<size_t>(i)] = static_cast<float>((i * 5) % 11 - 5);
    }
    tenon::Tensor x = tenon::Tensor::from<float>(a, {n, n});
    tenon::Tensor y = tenon::Tensor::from<float>(b, {n, n});
    const std::vector<float> product = tenon::matmul(x, y).to_host<float>();
    for (int64_t row = 0; row < n; row += 53) {
      for (int64_t column = 0; column < n; column += 31) {
        double sum = 0;
        for (int64_t k = 0; k < n; k++) {
          sum += static_cast<double>(a[static_cast<size_t>(row * n + k)]) *
                 static_cast<double>(b[static_cast<size_t>(k * n + column)]);
        }
        if (static_cast<double>(product[static_cast<size_t>(row * n + column)]) != sum) return 1;
      }
    }
    const std::vector<float> weights = tenon::softmax(x, -1).to_host<float>();
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += static_cast<double>(weights[static_cast<size_t>(k)]);
    if (std::abs(sum - 1) > 1e-5) return 2;
    const tenon::onnx::Model model = tenon::onnx::load(COEXIST_MODEL);
    const std::vector<float> picture(3 * 64 * 64, 0.25f);
    const tenon::Tensor image = tenon::Tensor::from<float>(picture, {1, 3, 64, 64});
    const std::vector<float> chances = model.run({{model.inputs().at(0).name, image}}).at(0).to_host<float>();
    sum = 0;
    for (float chance : chances) sum += static_cast<double>(chance);
    return std::abs(sum - 1) < 1e-5 ? 0 : 4;
  } catch (const tenon::Error& error) {
    std::printf("%s\n", error.what());
    return 3;
  }
}
