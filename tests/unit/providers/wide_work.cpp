#include "tests/unit/providers/wide_work.h"

#include <gtest/gtest.h>

#include <cstring>
#include <random>

#include "primitives/text/format.h"

namespace tenon::provider {
namespace {

ep_scalar f32_scalar(double value) {
  ep_scalar scalar{};
  scalar.dtype = EP_DTYPE_f32;
  scalar.value.f64 = value;
  return scalar;
}

Work unary(int32_t op, int64_t n) {
  Work work{
      "unary",
      descriptor(EP_PRIMITIVE_unary, {dense(EP_ROLE_DST, EP_DTYPE_f32, {n}), dense(EP_ROLE_SRC, EP_DTYPE_f32, {n})}),
      {}};
  work.desc.attributes.unary.op = op;
  return work;
}

Work reduce(const std::vector<int64_t>& dims, uint32_t axes) {
  std::vector<int64_t> kept = dims;
  for (size_t axis = 0; axis < dims.size(); ++axis) {
    if (((axes >> axis) & 1U) != 0) kept[axis] = 1;
  }
  Work work{
      "reduce",
      descriptor(EP_PRIMITIVE_reduce, {dense(EP_ROLE_DST, EP_DTYPE_f32, kept), dense(EP_ROLE_SRC, EP_DTYPE_f32, dims)}),
      {}};
  work.desc.attributes.reduce.op = EP_REDUCE_sum;
  work.desc.attributes.reduce.axes = axes;
  return work;
}

Work softmax(int64_t rows, int64_t columns) {
  Work work{"softmax",
            descriptor(EP_PRIMITIVE_softmax, {dense(EP_ROLE_DST, EP_DTYPE_f32, {rows, columns}),
                                              dense(EP_ROLE_SRC, EP_DTYPE_f32, {rows, columns})}),
            {}};
  work.desc.attributes.softmax.axis = 1;
  return work;
}

Work layer_norm(int64_t rows, int64_t columns) {
  Work work{"layer_norm",
            descriptor(EP_PRIMITIVE_layer_norm, {dense(EP_ROLE_DST, EP_DTYPE_f32, {rows, columns}),
                                                 dense(EP_ROLE_SRC, EP_DTYPE_f32, {rows, columns})}),
            {f32_scalar(1e-5)}};
  work.desc.attributes.layer_norm.axis = 1;
  return work;
}

Work matmul(int64_t m, int64_t n, int64_t k) {
  return {fmt::format("matmul {} {} {}", m, n, k),
          descriptor(EP_PRIMITIVE_matmul,
                     {dense(EP_ROLE_DST, EP_DTYPE_f32, {m, n}), dense(EP_ROLE_SRC, EP_DTYPE_f32, {m, k}),
                      dense(EP_ROLE_SRC_B, EP_DTYPE_f32, {k, n})}),
          {}};
}

Work convolution(int64_t channels, int64_t size, int64_t kernel) {
  Work work{
      "convolution",
      descriptor(EP_PRIMITIVE_convolution, {dense(EP_ROLE_DST, EP_DTYPE_f32, {1, channels, size, size}),
                                            dense(EP_ROLE_SRC, EP_DTYPE_f32, {1, channels, size, size}),
                                            dense(EP_ROLE_WEIGHT, EP_DTYPE_f32, {channels, channels, kernel, kernel})}),
      {}};
  ep_convolution_attributes& attributes = work.desc.attributes.convolution;
  attributes.spatial_rank = 2;
  attributes.groups = 1;
  for (int i = 0; i < 2; ++i) {
    attributes.stride[i] = attributes.dilation[i] = 1;
    attributes.pad_low[i] = attributes.pad_high[i] = kernel / 2;
  }
  return work;
}

// A convolution with channels last and a constant weight.
Work packed(Work work) {
  work.name = fmt::format("packed convolution of {} channels", work.desc.operands[1].dims[1]);
  for (int i = 0; i < 2; ++i) {
    ep_operand_desc& image = work.desc.operands[i];
    image = strided(image.role, image.dtype, {1, image.dims[1], image.dims[2], image.dims[3]},
                    {extent(image), 1, image.dims[3] * image.dims[1], image.dims[1]});
  }
  work.desc.operands[2].flags = EP_OPERAND_FLAG_CONSTANT;
  return work;
}

// Each pixel produces 2 x 2 results.
Work transposed(int64_t channels, int64_t size) {
  Work work = convolution(channels, size, 2);
  work.desc.operands[0] = dense(EP_ROLE_DST, EP_DTYPE_f32, {1, channels, 2 * size, 2 * size});
  ep_convolution_attributes& attributes = work.desc.attributes.convolution;
  attributes.transposed = 1;
  for (int i = 0; i < 2; ++i) {
    attributes.stride[i] = 2;
    attributes.pad_low[i] = attributes.pad_high[i] = 0;
  }
  return packed(work);
}

// 40 steps of one element, whose state several threads share.
Work recurrent(const char* name, int32_t cell, int64_t gates, int32_t flags, int64_t width) {
  Work work{name,
            descriptor(EP_PRIMITIVE_recurrent,
                       {dense(EP_ROLE_DST, EP_DTYPE_f32, {40, 1, width}), dense(EP_ROLE_SRC, EP_DTYPE_f32, {40, 1, 70}),
                        dense(EP_ROLE_WEIGHT, EP_DTYPE_f32, {gates * width, 70}),
                        dense(EP_ROLE_RECURRENT_WEIGHT, EP_DTYPE_f32, {gates * width, width})}),
            {}};
  work.desc.attributes.recurrent.cell = cell;
  work.desc.attributes.recurrent.flags = flags;
  return work;
}

// An epilogue that runs over the finished result, on several threads.
Work with_gelu(Work work) {
  work.name = "gelu after " + std::string(work.name);
  work.desc.epilogue_count = 1;
  work.desc.epilogues[0] = {1, EP_UNARY_gelu, 0, 4};
  return work;
}

}  // namespace

std::vector<Work> wide_work() {
  std::vector<Work> all = {
      unary(EP_UNARY_exp, 300'001),
      reduce({1'000'003}, 1),
      reduce({777, 1031}, 1),
      reduce({5'501, 771}, 1),
      reduce({777, 1031}, 2),
      reduce({3, 400'000}, 2),
      softmax(513, 700),
      softmax(3, 100'000),
      layer_norm(513, 700),
      matmul(96, 96, 96),
      matmul(128, 768, 768),
      matmul(7, 5, 60'000),
      matmul(1, 1000, 2048),
      matmul(33, 17, 4001),
      convolution(64, 28, 3),
      convolution(64, 28, 1),
      with_gelu(convolution(64, 28, 3)),
      packed(convolution(64, 28, 3)),
      packed(convolution(256, 14, 3)),
      packed(convolution(320, 30, 3)),
      transposed(128, 17),
      recurrent("lstm", EP_CELL_LSTM, 4, 0, 301),
      recurrent("gru", EP_CELL_GRU, 3, 0, 301),
      recurrent("gru, linear before reset", EP_CELL_GRU, 3, EP_RECURRENT_FLAG_LINEAR_BEFORE_RESET, 301)};
  for (Work& work : all) work.desc.flags |= EP_PRIMITIVE_FLAG_DETERMINISTIC;
  return all;
}

std::vector<std::vector<float>> operands_of(const Work& work) {
  std::mt19937 generator(5);
  std::uniform_real_distribution<float> distribution(-1.0f, 1.0f);
  std::vector<std::vector<float>> operands;
  for (uint32_t i = 0; i < work.desc.operand_count; ++i) {
    operands.emplace_back(static_cast<size_t>(extent(work.desc.operands[i])), -9.0f);
    if (i == 0) continue;
    for (float& value : operands.back()) value = distribution(generator);
  }
  return operands;
}

std::vector<float> result_of(OpenProvider& provider, const Work& work, std::vector<std::vector<float>> operands) {
  std::vector<void*> addresses;
  addresses.reserve(operands.size());
  for (auto& operand : operands) addresses.push_back(operand.data());
  EXPECT_EQ(run_once(provider, work.desc, addresses, work.scalars).status, EP_STATUS_OK) << provider.host.sentence();
  return operands[0];
}

bool equal_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

}  // namespace tenon::provider
