// Results of kernels whose teams have several rounds of work and whose threads have several chunks: on the fake driver
// with the geometry of a GPU, and on a GPU if there is one.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>

#include "ep_api/ep_names.h"
#include "providers/cuda/kernels/arguments.h"
#include "providers/cuda/kernels/element.h"
#include "tests/unit/providers/cuda/fixture.h"

namespace tenon::provider::cuda {
namespace {

class CudaKernels : public FakeCuda {
 protected:
  std::vector<float> softmax(const std::vector<float>& x, int64_t rows, int64_t length, int64_t stride, bool log) {
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_softmax, {strided(EP_ROLE_DST, EP_DTYPE_f32, {rows, length}, {stride, 1}),
                                          strided(EP_ROLE_SRC, EP_DTYPE_f32, {rows, length}, {stride, 1})});
    desc.attributes.softmax = {1, log ? 1 : 0};
    ep_memory* result = with(std::vector<float>(x.size(), 77));
    EXPECT_EQ(launch(desc, {result, with(x)}), EP_STATUS_OK) << cuda().host.sentence();
    return get<float>(result, x.size());
  }
  std::vector<float> sums(const std::vector<float>& x, int64_t rows, int64_t length, int64_t stride) {
    ep_primitive_desc desc = descriptor(
        EP_PRIMITIVE_reduce,
        {dense(EP_ROLE_DST, EP_DTYPE_f32, {rows, 1}), strided(EP_ROLE_SRC, EP_DTYPE_f32, {rows, length}, {stride, 1})});
    desc.attributes.reduce = {EP_REDUCE_sum, 2};
    ep_memory* result = block(static_cast<uint64_t>(rows) * 4);
    EXPECT_EQ(launch(desc, {result, with(x)}), EP_STATUS_OK) << cuda().host.sentence();
    return get<float>(result, static_cast<size_t>(rows));
  }
};

// Rows for each kernel, in whole packs or not, aligned or not.
TEST_F(CudaKernels, SoftmaxOfRowsOfEveryLength) {
  for (const int64_t length : {1, 5, 300, 512, 900, 1024, 1028, 2048, 4096, 4097, 8192, 16383, 16384, 20001}) {
    for (const int64_t gap : {0, 1, 4}) {
      const int64_t rows = 3;
      const int64_t stride = length + gap;
      const std::vector<float> x = random_floats(static_cast<size_t>(rows * stride), 5);
      const std::vector<float> plain = softmax(x, rows, length, stride, false);
      const std::vector<float> log = softmax(x, rows, length, stride, true);
      for (int64_t row = 0; row < rows; ++row) {
        const size_t at = static_cast<size_t>(row * stride);
        double total = 0;
        for (size_t i = 0; i < static_cast<size_t>(length); ++i) total += std::exp(static_cast<double>(x[at + i]));
        for (size_t i = 0; i < static_cast<size_t>(length); ++i) {
          const double want = std::exp(static_cast<double>(x[at + i])) / total;
          ASSERT_NEAR(plain[at + i], want, 2e-6 * want) << length << " " << gap << " " << row << " " << i;
          ASSERT_NEAR(log[at + i], std::log(want), 1e-5) << length << " " << gap << " " << row << " " << i;
        }
        for (size_t i = static_cast<size_t>(length); i < static_cast<size_t>(stride); ++i) {
          ASSERT_EQ(plain[at + i], 77) << "a gap was written";
        }
      }
    }
  }
}

TEST_F(CudaKernels, SoftmaxOfWhatIsNoNumber) {
  const float inf = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const int64_t length : {5, 900, 1500, 5000, 20000}) {
    std::vector<float> x(static_cast<size_t>(4 * length), -1.5F);
    x[static_cast<size_t>(length - 1)] = nan;
    x[static_cast<size_t>(2 * length - 2)] = inf;
    std::fill_n(x.begin() + 2 * length, length, -inf);
    x[static_cast<size_t>(3 * length + 1)] = -inf;
    const std::vector<float> got = softmax(x, 4, length, length, false);
    for (int64_t i = 0; i < 3 * length; ++i) ASSERT_TRUE(std::isnan(got[static_cast<size_t>(i)])) << length << " " << i;
    EXPECT_EQ(got[static_cast<size_t>(3 * length + 1)], 0) << length;
    EXPECT_NEAR(got[static_cast<size_t>(3 * length)], 1.0 / static_cast<double>(length - 1), 1e-6) << length;
  }
}

TEST_F(CudaKernels, SumsOfRowsOfEveryLength) {
  for (const int64_t length : {7, 100, 1024, 2047, 2048, 4096, 5001, 16384, 40000}) {
    for (const int64_t gap : {0, 1, 4}) {
      const int64_t stride = length + gap;
      const std::vector<float> x = random_floats(static_cast<size_t>(5 * stride), 6);
      const std::vector<float> got = sums(x, 5, length, stride);
      for (size_t row = 0; row < 5; ++row) {
        double want = 0;
        for (size_t i = 0; i < static_cast<size_t>(length); ++i) want += x[row * static_cast<size_t>(stride) + i];
        EXPECT_NEAR(got[row], want, 1e-4 * std::sqrt(static_cast<double>(length))) << length << " " << gap;
      }
    }
  }
}

// Rows for each kernel, in whole packs or not, with a mean that is large compared with their deviation. The last row
// has parts of more elements than a block holds.
TEST_F(CudaKernels, LayerNormOfRowsOfEveryLength) {
  for (const int64_t length : {1, 5, 300, 512, 900, 1024, 1028, 4096, 4097, 16383, 20001, 24000, 1050003}) {
    for (const int64_t gap : {0, 1, 4}) {
      if (length > 100000 && gap != 0) continue;
      const int64_t stride = length + gap;
      std::vector<float> x = random_floats(static_cast<size_t>(3 * stride), 7);
      for (float& value : x) value += 100;
      const std::vector<float> scale = random_floats(static_cast<size_t>(length), 8);
      const std::vector<float> shift = random_floats(static_cast<size_t>(length), 9);
      ep_primitive_desc desc = descriptor(
          EP_PRIMITIVE_layer_norm,
          {strided(EP_ROLE_DST, EP_DTYPE_f32, {3, length}, {stride, 1}), dense(EP_ROLE_MEAN, EP_DTYPE_f32, {3, 1}),
           strided(EP_ROLE_SRC, EP_DTYPE_f32, {3, length}, {stride, 1}), dense(EP_ROLE_SCALE, EP_DTYPE_f32, {length}),
           dense(EP_ROLE_SHIFT, EP_DTYPE_f32, {length})});
      desc.attributes.layer_norm.axis = 1;
      ep_memory* result = with(std::vector<float>(x.size(), 77));
      ep_memory* mean = block(12);
      ASSERT_EQ(launch(desc, {result, mean, with(x), with(scale), with(shift)}, {{EP_DTYPE_f32, 0, {.f64 = 1e-3}}}),
                EP_STATUS_OK)
          << cuda().host.sentence();
      const std::vector<float> got = get<float>(result, x.size());
      const std::vector<float> means = get<float>(mean, 3);
      const auto count = static_cast<size_t>(length);
      for (size_t row = 0; row < 3; ++row) {
        const size_t at = row * static_cast<size_t>(stride);
        double total = 0;
        double squares = 0;
        for (size_t i = 0; i < count; ++i) total += x[at + i];
        const double middle = total / static_cast<double>(length);
        for (size_t i = 0; i < count; ++i) squares += (x[at + i] - middle) * (x[at + i] - middle);
        const double deviation = std::sqrt(squares / static_cast<double>(length) + 1e-3);
        ASSERT_NEAR(means[row], middle, 1e-4) << length << " " << gap;
        for (size_t i = 0; i < count; ++i) {
          const double want = (x[at + i] - middle) / deviation * scale[i] + shift[i];
          ASSERT_NEAR(got[at + i], want, 3e-3) << length << " " << gap << " " << row << " " << i;
        }
        for (size_t i = count; i < static_cast<size_t>(stride); ++i) ASSERT_EQ(got[at + i], 77) << "a gap was written";
      }
    }
  }
}

// One weight of a group is used for whole planes: in whole packs or not, held in registers or not.
TEST_F(CudaKernels, GroupNormTakesTheWeightsOfEachChannel) {
  for (const int64_t plane : {1, 7, 64, 1200, 9000}) {
    const int64_t channels = 6;
    const auto size = static_cast<size_t>(2 * channels * plane);
    const std::vector<float> x = random_floats(size, 3);
    const std::vector<float> scale = random_floats(static_cast<size_t>(channels), 4);
    const std::vector<float> shift = random_floats(static_cast<size_t>(channels), 5);
    ep_primitive_desc desc = descriptor(
        EP_PRIMITIVE_group_norm,
        {dense(EP_ROLE_DST, EP_DTYPE_f32, {2, channels, plane}), dense(EP_ROLE_SRC, EP_DTYPE_f32, {2, channels, plane}),
         dense(EP_ROLE_SCALE, EP_DTYPE_f32, {channels}), dense(EP_ROLE_SHIFT, EP_DTYPE_f32, {channels})});
    desc.attributes.group_norm.groups = 3;
    ep_memory* result = block(size * 4);
    ASSERT_EQ(launch(desc, {result, with(x), with(scale), with(shift)}, {{EP_DTYPE_f32, 0, {.f64 = 0.01}}}),
              EP_STATUS_OK)
        << cuda().host.sentence();
    const std::vector<float> got = get<float>(result, size);
    const auto row = static_cast<size_t>(2 * plane);
    for (size_t at = 0; at < size; at += row) {
      double total = 0;
      double squares = 0;
      for (size_t i = at; i < at + row; ++i) total += x[i];
      const double middle = total / static_cast<double>(row);
      for (size_t i = at; i < at + row; ++i) squares += (x[i] - middle) * (x[i] - middle);
      const double deviation = std::sqrt(squares / static_cast<double>(row) + 0.01);
      for (size_t i = at; i < at + row; ++i) {
        const size_t channel = i / static_cast<size_t>(plane) % static_cast<size_t>(channels);
        ASSERT_NEAR(got[i], (x[i] - middle) / deviation * scale[channel] + shift[channel], 1e-4) << plane << " " << i;
      }
    }
  }
}

// 20 images whose columns take 45 MB, more than an eighth of the fake device: in two groups of channels, with steps and
// a border, into rows and into innermost channels.
TEST_F(CudaKernels, ConvolutionTakesSomeImagesAtATime) {
  setenv("FAKE_CUDNN_VERSION", "8907", 1);
  constexpr int64_t images = 20, channels = 16, outputs = 6, length = 126, out = 63;
  const std::vector<float> x = random_floats(images * channels * length * length, 3);
  const std::vector<float> filters = random_floats(outputs * channels / 2 * 9, 4);
  const std::vector<float> bias = random_floats(outputs, 5);
  for (const bool channels_last : {false, true}) {
    const std::vector<int64_t> strides = channels_last
                                             ? std::vector<int64_t>{outputs * out * out, 1, outputs * out, outputs}
                                             : std::vector<int64_t>{outputs * out * out, out * out, out, 1};
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_convolution, {strided(EP_ROLE_DST, EP_DTYPE_f32, {images, outputs, out, out}, strides),
                                              dense(EP_ROLE_SRC, EP_DTYPE_f32, {images, channels, length, length}),
                                              dense(EP_ROLE_WEIGHT, EP_DTYPE_f32, {outputs, channels / 2, 3, 3}),
                                              dense(EP_ROLE_BIAS, EP_DTYPE_f32, {outputs})});
    desc.attributes.convolution.spatial_rank = 2;
    desc.attributes.convolution.groups = 2;
    for (size_t axis = 0; axis < 2; ++axis) {
      desc.attributes.convolution.stride[axis] = 2;
      desc.attributes.convolution.dilation[axis] = desc.attributes.convolution.pad_low[axis] = 1;
      desc.attributes.convolution.pad_high[axis] = 1;
    }
    ep_memory* result = with(std::vector<float>(images * outputs * out * out, 77));
    ASSERT_EQ(launch(desc, {result, with(x), with(filters), with(bias)}), EP_STATUS_OK) << cuda().host.sentence();
    const std::vector<float> got = get<float>(result, images * outputs * out * out);
    for (int64_t i = 0; i < 4000; ++i) {
      const int64_t place = i * 7919 % (images * outputs * out * out);
      const int64_t column = place % out, row = place / out % out, output = place / (out * out) % outputs;
      const int64_t image = place / (out * out * outputs), first = output / (outputs / 2) * (channels / 2);
      double want = bias[static_cast<size_t>(output)];
      for (int64_t tap = 0; tap < channels / 2 * 9; ++tap) {
        const int64_t y = 2 * row - 1 + tap / 3 % 3, z = 2 * column - 1 + tap % 3;
        if (y < 0 || z < 0 || y >= length || z >= length) continue;
        const int64_t from = ((image * channels + first + tap / 9) * length + y) * length + z;
        want += static_cast<double>(x[static_cast<size_t>(from)]) *
                filters[static_cast<size_t>(output * channels / 2 * 9 + tap)];
      }
      const int64_t at = image * strides[0] + output * strides[1] + row * strides[2] + column * strides[3];
      ASSERT_NEAR(got[static_cast<size_t>(at)], want, 2e-5) << channels_last << " " << place;
    }
  }
  unsetenv("FAKE_CUDNN_VERSION");
}

// A row long enough to be split; equal elements are in different parts.
TEST_F(CudaKernels, TheGreatestOfALongRowIsFoundInParts) {
  const int64_t length = 70001;
  for (const int32_t last : {0, 1}) {
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_arg_reduce, {dense(EP_ROLE_DST, EP_DTYPE_i64, {2, 1}),
                                                                  dense(EP_ROLE_SRC, EP_DTYPE_f32, {2, length})});
    desc.attributes.arg_reduce = {EP_REDUCE_max, 1, last, 0};
    std::vector<float> x = random_floats(static_cast<size_t>(2 * length), 2);
    x[123] = x[40000] = x[69999] = 5;
    x[static_cast<size_t>(length) + 60000] = std::numeric_limits<float>::quiet_NaN();
    ep_memory* result = block(16);
    ASSERT_EQ(launch(desc, {result, with(x)}), EP_STATUS_OK) << cuda().host.sentence();
    EXPECT_EQ(get<int64_t>(result, 2), (std::vector<int64_t>{last == 0 ? 123 : 69999, 60000}));
  }
}

// Rows of one tile and of several, for each team, from both ends.
TEST_F(CudaKernels, ScansOfRowsOfEveryLength) {
  for (const int64_t length : {1, 7, 128, 129, 1000, 1024, 1025, 5003}) {
    for (const int32_t reverse : {0, 1}) {
      for (const int32_t exclusive : {0, 1}) {
        ep_primitive_desc desc = descriptor(EP_PRIMITIVE_scan, {dense(EP_ROLE_DST, EP_DTYPE_i32, {3, length}),
                                                                dense(EP_ROLE_SRC, EP_DTYPE_i32, {3, length})});
        desc.attributes.scan = {1, EP_SCAN_SUM, exclusive, reverse};
        std::vector<int32_t> x(static_cast<size_t>(3 * length));
        for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<int32_t>(i * 7 % 31);
        std::vector<int32_t> want = x;
        for (size_t row = 0; row < 3; ++row) {
          int32_t sum = 0;
          for (size_t step = 0; step < static_cast<size_t>(length); ++step) {
            const size_t in_row = reverse != 0 ? static_cast<size_t>(length) - 1 - step : step;
            int32_t& element = want[row * static_cast<size_t>(length) + in_row];
            const int32_t before = sum;
            sum += element;
            element = exclusive != 0 ? before : sum;
          }
        }
        ep_memory* both = with(x);  // in place
        ASSERT_EQ(launch(desc, {both, both}), EP_STATUS_OK) << cuda().host.sentence();
        ASSERT_EQ(get<int32_t>(both, x.size()), want) << length << " " << reverse << " " << exclusive;
      }
    }
  }
}

// Thousands of updates of few elements.
TEST_F(CudaKernels, ScatterCombinesAllUpdatesOfAnElement) {
  const int64_t updates = 30000;
  const int64_t places = 7;
  std::vector<int64_t> indices(static_cast<size_t>(updates));
  std::vector<int64_t> last(static_cast<size_t>(places), 0);
  std::vector<int32_t> counts(static_cast<size_t>(places), 1);  // for each position, with the element that was there
  for (size_t i = 0; i < indices.size(); ++i) {
    const size_t place = i * i % 7;
    indices[i] = static_cast<int64_t>(i % 2 == 0 ? place : place - 7);
    last[place] = static_cast<int64_t>(i);
    ++counts[place];
  }
  const auto run = [&](int32_t op, int32_t dtype, ep_memory* result, ep_memory* from, ep_memory* values) {
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_scatter,
                   {dense(EP_ROLE_DST, dtype, {places}), dense(EP_ROLE_SRC, dtype, {places}),
                    dense(EP_ROLE_SRC_B, dtype, {updates}), dense(EP_ROLE_INDICES, EP_DTYPE_i64, {updates})});
    desc.attributes.scatter = {0, EP_GATHER_ELEMENTS, op, 0};
    return launch(desc, {result, from, values, with(indices)});
  };
  ep_memory* result = block(64);

  std::vector<int64_t> numbers(indices.size());
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<int64_t>(i);
  ep_memory* zeros = with(std::vector<int64_t>(7, 0));
  ASSERT_EQ(run(EP_SCATTER_ASSIGN, EP_DTYPE_i64, result, zeros, with(numbers)), EP_STATUS_OK) << cuda().host.sentence();
  EXPECT_EQ(get<int64_t>(result, 7), last);
  ASSERT_EQ(run(EP_SCATTER_MAX, EP_DTYPE_i64, result, zeros, with(numbers)), EP_STATUS_OK) << cuda().host.sentence();
  EXPECT_EQ(get<int64_t>(result, 7), last);

  // An f16 that counts in steps of 1 would stop at 2,048.
  ep_memory* halves = with(std::vector<uint16_t>(7, 0x3c00));
  ep_memory* ones = with(std::vector<uint16_t>(indices.size(), 0x3c00));
  ASSERT_EQ(run(EP_SCATTER_ADD, EP_DTYPE_f16, result, halves, ones), EP_STATUS_OK) << cuda().host.sentence();
  const std::vector<uint16_t> sums = get<uint16_t>(result, 7);
  for (size_t i = 0; i < sums.size(); ++i) {
    EXPECT_NEAR(half_to_float(sums[i]), static_cast<float>(counts[i]), static_cast<float>(counts[i]) / 2048) << i;
  }

  ASSERT_EQ(run(EP_SCATTER_ADD, EP_DTYPE_u8, result, with(std::vector<uint8_t>(7, 1)),
                with(std::vector<uint8_t>(indices.size(), 1))),
            EP_STATUS_OK)
      << cuda().host.sentence();
  const std::vector<uint8_t> wrapped = get<uint8_t>(result, 7);
  for (size_t i = 0; i < wrapped.size(); ++i) EXPECT_EQ(wrapped[i], counts[i] & 0xff) << i;
}

// Long enough for two chunks per thread, with a last chunk that is empty, and with a scalar operand.
TEST_F(CudaKernels, LongRunsAreTakenTwoChunksAtATime) {
  fake().record = true;
  const int64_t count = on_fake() ? 100003 : 4000003;
  const ep_operand_desc all = dense(EP_ROLE_DST, EP_DTYPE_f32, {count});
  const ep_operand_desc src = dense(EP_ROLE_SRC, EP_DTYPE_f32, {count});
  ep_primitive_desc desc = descriptor(EP_PRIMITIVE_binary, {all, src, dense(EP_ROLE_SRC_B, EP_DTYPE_f32, {count})});
  desc.attributes.binary.op = EP_BINARY_sub;
  const std::vector<float> x = random_floats(static_cast<size_t>(count), 1);
  const std::vector<float> y = random_floats(static_cast<size_t>(count), 2);
  ep_memory* left = with(x);
  ASSERT_EQ(launch(desc, {left, left, with(y)}), EP_STATUS_OK);  // in place
  const std::vector<float> got = get<float>(left, x.size());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(got[i], x[i] - y[i]) << i;
  if (on_fake()) {
    MapArguments map;
    std::memcpy(&map, fake().recorded()[0].arguments.data(), sizeof map);
    EXPECT_EQ(map.steps, 2U);
    EXPECT_EQ(fake().recorded()[0].grid, 49U);  // 25,001 chunks, 512 per block
  }

  desc.operands[2] = scalar_operand(EP_ROLE_SRC_B, EP_DTYPE_f32);
  ASSERT_EQ(launch(desc, {left, with(x), nullptr}, {{}, {EP_DTYPE_f32, 0, {.f64 = 0.5}}}), EP_STATUS_OK);
  const std::vector<float> less = get<float>(left, x.size());
  for (size_t i = 0; i < x.size(); ++i) ASSERT_EQ(less[i], x[i] - 0.5F) << i;
}

TEST_F(CudaKernels, NarrowNumbersTakeTheSameWalk) {
  const int64_t count = on_fake() ? 70002 : 4000002;
  for (const int32_t to : {EP_DTYPE_f16, EP_DTYPE_i8, EP_DTYPE_bool, EP_DTYPE_f64}) {
    const ep_primitive_desc there =
        descriptor(EP_PRIMITIVE_copy, {dense(EP_ROLE_DST, to, {count}), dense(EP_ROLE_SRC, EP_DTYPE_f32, {count})});
    const ep_primitive_desc back =
        descriptor(EP_PRIMITIVE_copy, {dense(EP_ROLE_DST, EP_DTYPE_f32, {count}), dense(EP_ROLE_SRC, to, {count})});
    std::vector<float> x(static_cast<size_t>(count));
    for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(to == EP_DTYPE_bool ? i % 3 == 0 : i % 101);
    ep_memory* narrow = block(static_cast<uint64_t>(count) * 8);
    ep_memory* wide = block(static_cast<uint64_t>(count) * 4);
    ASSERT_EQ(launch(there, {narrow, with(x)}), EP_STATUS_OK) << cuda().host.sentence();
    ASSERT_EQ(launch(back, {wide, narrow}), EP_STATUS_OK) << cuda().host.sentence();
    EXPECT_EQ(get<float>(wide, x.size()), x) << ep_dtype_name(to);
  }
}

// relu must keep NaN, whether cuBLASLt or our kernel applies it.
TEST_F(CudaKernels, ReluAfterAMatmulKeepsNaN) {
  const int64_t n = 64;
  for (const int32_t dtype : {EP_DTYPE_f32, EP_DTYPE_f16}) {
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_matmul, {dense(EP_ROLE_DST, EP_DTYPE_f32, {n, n}), dense(EP_ROLE_SRC, dtype, {n, n}),
                                         dense(EP_ROLE_SRC_B, dtype, {n, n})});
    for (int i = 0; i < 3; ++i) desc.operands[i].alignment = 16;
    desc.epilogue_count = 1;
    desc.epilogues[0] = {1, EP_UNARY_relu, 0, 0};
    ep_memory* result = block(n * n * 4);
    const auto run = [&](ep_memory* a) { return launch(desc, {result, a, a}); };
    if (dtype == EP_DTYPE_f32) {
      std::vector<float> a(n * n, -0.5F);
      a[3 * n + 5] = std::numeric_limits<float>::quiet_NaN();
      ASSERT_EQ(run(with(a)), EP_STATUS_OK) << cuda().host.sentence();
    } else {
      std::vector<uint16_t> a(n * n, 0xb800);  // -0.5
      a[3 * n + 5] = 0x7e00;
      ASSERT_EQ(run(with(a)), EP_STATUS_OK) << cuda().host.sentence();
    }
    const std::vector<float> got = get<float>(result, n * n);
    EXPECT_EQ(got[2 * n + 7], 0.25F * n);
    EXPECT_TRUE(std::isnan(got[3 * n + 7])) << dtype;
    EXPECT_TRUE(std::isnan(got[9 * n + 5])) << dtype;
  }
}

}  // namespace
}  // namespace tenon::provider::cuda
