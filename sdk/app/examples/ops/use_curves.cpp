// Uses the ops of the library: as functions, by name, with gradients, and in a compiled step.
#include <curves/ops.h>
#include <tenon/tenon.h>

#include <cstdio>
#include <string>
#include <vector>

namespace {

void print(const char* what, const tenon::Tensor& tensor) {
  std::printf("%s:", what);
  for (const double value : tensor.to(tenon::DType::f64).to_host<double>()) std::printf(" %.6f", value);
  std::printf("\n");
}

void print_refusal(const char* what, const std::vector<tenon::Value>& arguments) {
  try {
    tenon::call(what, arguments);
  } catch (const tenon::Error& error) {
    std::printf("refused: %s\n", error.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    if (argc > 1) tenon::Device::set_current(tenon::Device(argv[1]));
    const tenon::Tensor x = tenon::Tensor::from({{-2.0, -0.75, 0.25}, {0.5, 1.0, 3.0}});

    print("swish2", curves::swish2(x, 1.5));
    print("by name", tenon::call("curves::swish2", {x}, {{"beta", 1.5}}).at(0));
    print("soft_clip", curves::soft_clip(tenon::t(x), 2.0));  // works on views too
    print("staircase", curves::staircase(x, 5));
    print("row_softmax", curves::row_softmax(x));
    const tenon::Tensor queries = tenon::Tensor::from({{0.0, 1.0, 2.0}, {-3.0, -1.0, 0.0}});
    const auto [distance, number] = curves::nearest_point(x, queries);
    print("distance", distance);
    print("number", number);

    const tenon::Tensor w = tenon::clone(x).requires_grad_();
    const auto gradient = [&](const char* what, const tenon::Tensor& result) {
      print(what, tenon::grad({tenon::sum(tenon::square(result))}, {w}).at(0));
    };
    gradient("gradient of swish2", curves::swish2(w, 1.5));
    gradient("gradient of soft_clip", curves::soft_clip(w, 2.0));
    gradient("gradient of row_softmax", curves::row_softmax(w, true));
    gradient("gradient of nearest_point", std::get<0>(curves::nearest_point(w, queries)));

    const auto step = tenon::compile([](const tenon::Tensor& v) {
      return curves::soft_clip(curves::row_softmax(curves::swish2(v) * 3), 0.5) + curves::staircase(v, 9);
    });
    print("eager", curves::soft_clip(curves::row_softmax(curves::swish2(x) * 3), 0.5) + curves::staircase(x, 9));
    for (int run = 0; run < 3; ++run) print("compiled", step(x));
    print("compiled, another size", step(tenon::narrow(x, 0, 1, 1)));

    print_refusal("curves::staircase", {x, 1});
    print_refusal("curves::soft_clip", {tenon::Tensor::from({1, 2})});
    print_refusal("curves::soft_clop", {x});
    print_refusal("curve::soft_clip", {x});
    return 0;
  } catch (const tenon::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
