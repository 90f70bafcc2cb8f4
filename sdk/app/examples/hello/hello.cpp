// Computes one layer of a network on the given device: hello [cpu | cuda:0 | sample:0 | ...]
#include <tenon/tenon.h>
#include <cstdio>
#include <vector>

int main(int argc, char** argv) {
  try {
    if (argc > 1) tenon::Device::set_current(tenon::Device(argv[1]));

    const std::vector<float> pixels = {0.5f, -1.0f, 2.0f, 1.5f, 0.25f, -0.75f};
    const std::vector<float> weights = {1.0f, 0.0f, -1.0f, 0.5f, 2.0f, -0.5f};
    tenon::Tensor x = tenon::Tensor::from<float>(pixels, {2, 3});
    tenon::Tensor w = tenon::Tensor::from<float>(weights, {3, 2});

    tenon::Tensor hidden = tenon::relu(x);
    tenon::Tensor scores = tenon::softmax(tenon::matmul(hidden, w), -1);

    std::printf("tenon %s on %s\n", tenon::version(), scores.device().spelling().c_str());
    const std::vector<float> values = scores.to_host<float>();
    for (int row = 0; row < 2; row++) std::printf("%.4f %.4f\n", values[2 * row], values[2 * row + 1]);
    return 0;
  } catch (const tenon::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
