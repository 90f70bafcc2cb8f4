// Convolutions of ResNet-50, MobileNet-v2 and U-Net, batch 1, against direct calls of oneDNN in its preferred layouts,
// with everything reordered beforehand. Our side runs a prepared launch: row-major or channels-last tensors, weights
// plain or packed.
#include <omp.h>

#include <cmath>
#include <dnnl.hpp>
#include <memory>
#include <random>
#include <vector>

#include "benchmarks/report/keep.h"
#include "benchmarks/report/report.h"
#include "core/interpreter/constant.h"
#include "core/interpreter/inference.h"
#include "core/interpreter/launch.h"
#include "core/ops/ops.h"
#include "primitives/text/format.h"

namespace {

using tenon::Device;
using tenon::Tensor;
using tenon::bench::Row;
using tenon::bench::Side;

struct Layer {
  const char* name;
  int64_t in, out, size, kernel, stride, groups;
  int64_t pad() const { return kernel / 2; }
  int64_t out_size() const { return (size + 2 * pad() - kernel) / stride + 1; }
};

constexpr Layer layers[] = {
    {"stem 7x7/2, 3 to 64, 224", 3, 64, 224, 7, 2, 1},
    {"1x1, 64 to 256, 56", 64, 256, 56, 1, 1, 1},
    {"3x3, 64, 56", 64, 64, 56, 3, 1, 1},
    {"3x3, 128, 28", 128, 128, 28, 3, 1, 1},
    {"3x3/2, 128, 56", 128, 128, 56, 3, 2, 1},
    {"1x1, 512 to 128, 28", 512, 128, 28, 1, 1, 1},
    {"1x1/2, 512 to 1024, 28", 512, 1024, 28, 1, 2, 1},
    {"3x3, 256, 14", 256, 256, 14, 3, 1, 1},
    {"1x1, 1024 to 256, 14", 1024, 256, 14, 1, 1, 1},
    {"3x3, 512, 7", 512, 512, 7, 3, 1, 1},
    {"1x1, 512 to 2048, 7", 512, 2048, 7, 1, 1, 1},
    {"stem 3x3/2, 3 to 32, 224", 3, 32, 224, 3, 2, 1},
    {"depthwise 3x3, 32, 112", 32, 32, 112, 3, 1, 32},
    {"depthwise 3x3/2, 96, 112", 96, 96, 112, 3, 2, 96},
    {"depthwise 3x3, 576, 14", 576, 576, 14, 3, 1, 576},
    {"1x1, 16 to 96, 112", 16, 96, 112, 1, 1, 1},
    {"1x1, 144 to 24, 56", 144, 24, 56, 1, 1, 1},
    {"1x1, 320 to 1280, 7", 320, 1280, 7, 1, 1, 1},
    {"3x3, 64, 256", 64, 64, 256, 3, 1, 1},
    {"3x3, 512, 32", 512, 512, 32, 3, 1, 1},
    {"3x3, 1024, 16", 1024, 1024, 16, 3, 1, 1},
};

std::vector<float> random_floats(int64_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> values(-1.0f, 1.0f);
  std::vector<float> out(static_cast<size_t>(count));
  for (float& value : out) value = values(engine);
  return out;
}

// One convolution through oneDNN's own API, on the OpenMP team of the calling thread.
class Direct {
 public:
  Direct(const Layer& layer, const Tensor& x, const Tensor& weight, const Tensor& bias, int threads)
      : engine_(dnnl::engine::kind::cpu, 0), stream_(engine_) {
    omp_set_num_threads(threads);
    using Desc = dnnl::memory::desc;
    const auto f32 = dnnl::memory::data_type::f32;
    const auto any = dnnl::memory::format_tag::any;
    dnnl::memory::dims kernel{layer.out, layer.in, layer.kernel, layer.kernel};
    if (layer.groups > 1) kernel = {layer.groups, layer.out / layer.groups, 1, layer.kernel, layer.kernel};
    const dnnl::memory::dims src{1, layer.in, layer.size, layer.size};
    const dnnl::memory::dims dst{1, layer.out, layer.out_size(), layer.out_size()};
    const dnnl::memory::dims stride{layer.stride, layer.stride}, pad{layer.pad(), layer.pad()};
    const dnnl::memory::dims high{(dst[2] - 1) * layer.stride + layer.kernel - layer.size - layer.pad(),
                                  (dst[3] - 1) * layer.stride + layer.kernel - layer.size - layer.pad()};
    const Desc bias_desc({layer.out}, f32, dnnl::memory::format_tag::a);
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::convolution_forward::primitive_desc desc(
        engine_, dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct, Desc(src, f32, any),
        Desc(kernel, f32, any), bias_desc, Desc(dst, f32, any), stride, pad, high);
#else
    const dnnl::convolution_forward::primitive_desc desc(
        dnnl::convolution_forward::desc(dnnl::prop_kind::forward_inference, dnnl::algorithm::convolution_direct,
                                        Desc(src, f32, any), Desc(kernel, f32, any), bias_desc, Desc(dst, f32, any),
                                        stride, pad, high),
        engine_);
#endif
    implementation = desc.impl_info_str();
    convolution_ = dnnl::convolution_forward(desc);
    const auto nchw = dnnl::memory::format_tag::abcd;
    const auto plain = layer.groups > 1 ? dnnl::memory::format_tag::abcde : nchw;
    arguments_ = {{DNNL_ARG_SRC, filled(Desc(src, f32, nchw), desc.src_desc(), x)},
                  {DNNL_ARG_WEIGHTS, filled(Desc(kernel, f32, plain), desc.weights_desc(), weight)},
                  {DNNL_ARG_BIAS, filled(bias_desc, bias_desc, bias)},
                  {DNNL_ARG_DST, dnnl::memory(desc.dst_desc(), engine_)}};
  }
  void run() { convolution_.execute(stream_, arguments_); }
  std::string implementation;

 private:
  dnnl::memory filled(const dnnl::memory::desc& from, const dnnl::memory::desc& to, const Tensor& values) {
    std::vector<float> data = values.to_host<float>();
    dnnl::memory given(from, engine_, data.data()), made(to, engine_);
    dnnl::reorder(given, made).execute(stream_, given, made);
    stream_.wait();
    return made;
  }

  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::convolution_forward convolution_;
  std::unordered_map<int, dnnl::memory> arguments_;
};

// Keeps the prepared launch of the convolution that runs under it.
class Preparing final : public tenon::Interpreter {
 public:
  Preparing(const Tensor& weight, bool packed) : constant_(tenon::Constant::of(weight)), packed_(packed) {}
  std::string name() const override { return "the benchmark"; }
  bool host_value_known(const Tensor&) override { return true; }
  void apply(const tenon::OpCall& call) override {
    prepared_ = tenon::value_or_throw(tenon::prepare(call, tenon::value_or_throw(tenon::device_of(call)),
                                                     tenon::Reach::setting, tenon::Sizes::open, packed_ ? 2 : 0));
    for (const Tensor* input : call.inputs) inputs_.push_back(input == nullptr ? Tensor() : *input);
    inputs_[1] = constant_->input_of(*prepared_, 1);
    attributes_.assign(static_cast<const char*>(call.attributes),
                       static_cast<const char*>(call.attributes) + call.op->attribute_bytes);
    call.outputs[0] = run();
  }
  Tensor run() {
    Tensor result;
    const Tensor* inputs[EP_MAX_OPERANDS];
    for (size_t i = 0; i < inputs_.size(); ++i) inputs[i] = inputs_[i].defined() ? &inputs_[i] : nullptr;
    tenon::OpCall call;
    call.op = prepared_->op;
    call.inputs = {inputs, inputs_.size()};
    call.attributes = attributes_.data();
    call.outputs = {&result, 1};
    tenon::OwnedInputs<tenon::kFewOperands> owned(call);
    tenon::run_prepared(&owned, *prepared_);
    return result;
  }

 private:
  std::shared_ptr<tenon::Constant> constant_;
  bool packed_;
  std::unique_ptr<tenon::Prepared> prepared_;
  std::vector<Tensor> inputs_;
  std::vector<char> attributes_;
};

struct Way {
  const char* name;
  bool channels_last, packed;
};
constexpr Way ways[] = {
    {"NCHW", false, false}, {"NCHW packed", false, true}, {"NHWC", true, false}, {"NHWC packed", true, true}};

Row row_of(const Layer& layer, const Way& way, Device device) {
  const int64_t taps = layer.kernel * layer.kernel * layer.in / layer.groups;
  const Tensor plain = Tensor::from<float>(random_floats(layer.in * layer.size * layer.size, 1),
                                           {1, layer.in, layer.size, layer.size}, device);
  const Tensor x = way.channels_last ? tenon::contiguous(plain, "channels_last") : plain;
  const Tensor weight = Tensor::from<float>(random_floats(layer.out * taps, 2),
                                            {layer.out, layer.in / layer.groups, layer.kernel, layer.kernel}, device);
  const Tensor bias = Tensor::from<float>(random_floats(layer.out, 3), {layer.out}, device);
  auto ours = std::make_shared<Preparing>(weight, way.packed);
  const auto call = [=] { return tenon::conv2d(x, weight, bias, layer.stride, layer.pad(), 1, layer.groups); };
  {
    const tenon::InterpreterScope scope(*ours);
    call();
  }
  std::vector<Side> peers;
  for (int threads = 1; threads <= std::min(2, omp_get_num_procs()); ++threads) {
    auto direct = std::make_shared<Direct>(layer, plain, weight, bias, threads);
    peers.push_back({fmt::format("oneDNN {}.{} {}, {} threads", DNNL_VERSION_MAJOR, DNNL_VERSION_MINOR,
                                 direct->implementation, threads),
                     [direct, threads](int64_t n) {
                       omp_set_num_threads(threads);
                       for (int64_t i = 0; i < n; ++i) direct->run();
                     }});
  }
  const auto check = [=]() -> std::string {
    const std::vector<float> found = ours->run().to_host<float>(), wanted = call().to_host<float>();
    for (size_t i = 0; i < found.size(); ++i) {
      if (std::abs(found[i] - wanted[i]) > 1e-5 * static_cast<double>(taps))
        return fmt::format("element {} is wrong", i);
    }
    return "";
  };
  return {fmt::format("{}, {}", layer.name, way.name),
          {"tenon on " + device.spelling(),
           [ours](int64_t n) {
             for (int64_t i = 0; i < n; ++i) tenon::bench::keep(ours->run());
           }},
          peers,
          way.channels_last && way.packed ? 1.03 : 0.0,
          check};
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<Row> rows;
  for (const Layer& layer : layers) {
    for (const Way& way : ways) rows.push_back(row_of(layer, way, Device("cpu")));
  }
  return tenon::bench::run(rows, argc, argv);
}
