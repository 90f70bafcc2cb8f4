// Convolutions on cuDNN against sums in double. The tests of CudaConvolutions also run on a GPU; the others need the
// restrictions of the fake: it has no engine for operands in different orders of axes, nor for a narrow source with a
// result in f32 in planes.
#include <fmt/core.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <map>

#include "providers/cuda/kernels/element.h"
#include "sdk/provider/descriptor.h"
#include "tests/unit/providers/cuda/fixture.h"

namespace tenon::provider::cuda {
namespace {

using Dims = std::vector<int64_t>;

enum class Order { PLANES, CHANNELS_LAST, GAPS };

Dims strides_of(const Dims& dims, Order order) {
  Dims strides(dims.size());
  int64_t stride = 1;
  const auto set = [&](size_t axis) {
    strides[axis] = stride;
    stride *= dims[axis] + (order == Order::GAPS ? 1 : 0);
  };
  if (order == Order::CHANNELS_LAST) set(1);
  for (size_t axis = dims.size(); axis-- > 0;) {
    if (axis != 1 || order != Order::CHANNELS_LAST) set(axis);
  }
  return strides;
}

// An operand with its elements in memory; the gaps hold 77.
struct Tensor {
  ep_operand_desc desc;
  std::vector<unsigned char> bytes;

  Tensor(int32_t role, int32_t dtype, const Dims& dims, Order order, uint32_t seed)
      : desc(strided(role, dtype, dims, strides_of(dims, order))) {
    const std::vector<float> values = random_floats(static_cast<size_t>(extent(desc)), seed);
    bytes.resize(values.size() * static_cast<size_t>(dtype_size(dtype)));
    for (size_t i = 0; i < values.size(); ++i) put(static_cast<int64_t>(i), 77);
    each([&](int64_t offset) { put(offset, static_cast<double>(values[static_cast<size_t>(offset)])); });
  }
  double get(int64_t offset) const {
    double value = 0;
    with_any_storage(desc.dtype, [&](auto storage) {
      value = widen<double>(reinterpret_cast<const decltype(storage)*>(bytes.data())[offset]);
    });
    return value;
  }
  void put(int64_t offset, double value) {
    with_any_storage(desc.dtype, [&](auto storage) {
      reinterpret_cast<decltype(storage)*>(bytes.data())[offset] = cast<decltype(storage)>(value);
    });
  }
  int64_t offset(int64_t a, int64_t b, int64_t c, int64_t d) const {
    return a * desc.strides[0] + b * desc.strides[1] + c * desc.strides[2] + d * desc.strides[3];
  }
  double at(int64_t a, int64_t b, int64_t c, int64_t d) const { return get(offset(a, b, c, d)); }
  template <class Visit>
  void each(const Visit& visit) const {
    int64_t count = 1;
    for (int32_t axis = 0; axis < desc.rank; ++axis) count *= desc.dims[axis];
    for (int64_t i = 0; i < count; ++i) {
      int64_t left = i, from = 0;
      for (int32_t axis = desc.rank - 1; axis >= 0; left /= desc.dims[axis--])
        from += left % desc.dims[axis] * desc.strides[axis];
      visit(from);
    }
  }
};

// Y [2, 6, 5, 6] of X [2, 4, 9, 8] with W [6, 2, 3, 2]: two groups, a step of 2 and 1, unequal borders.
constexpr int64_t images = 2, channels = 4, outputs = 6, groups = 2, height = 9, width = 8, rows = 5, columns = 6;
constexpr int64_t stride[] = {2, 1}, dilation[] = {1, 3}, low[] = {1, 0}, high[] = {2, 1};
const Dims x_dims = {images, channels, height, width}, w_dims = {outputs, channels / groups, 3, 2},
           y_dims = {images, outputs, rows, columns};

template <class Attributes>
void set_window(Attributes* attributes) {
  attributes->spatial_rank = 2;
  attributes->groups = groups;
  std::copy_n(stride, 2, attributes->stride);
  std::copy_n(dilation, 2, attributes->dilation);
  std::copy_n(low, 2, attributes->pad_low);
  std::copy_n(high, 2, attributes->pad_high);
}

// Calls visit(indices of x, of w, of y) for each product.
template <class Visit>
void each_product(const Visit& visit) {
  for (int64_t n = 0; n < images; ++n) {
    for (int64_t o = 0; o < outputs; ++o) {
      for (int64_t place = 0; place < rows * columns; ++place) {
        for (int64_t tap = 0; tap < channels / groups * 6; ++tap) {
          const int64_t c = tap / 6, k = tap / 2 % 3, l = tap % 2, i = place / columns, j = place % columns;
          const int64_t from = i * stride[0] - low[0] + k * dilation[0], to = j * stride[1] - low[1] + l * dilation[1];
          if (from < 0 || from >= height || to < 0 || to >= width) continue;
          const int64_t group = o / (outputs / groups);
          visit(Dims{n, group * (channels / groups) + c, from, to}, Dims{o, c, k, l}, Dims{n, o, i, j});
        }
      }
    }
  }
}

double round_to(int32_t dtype, double value) {
  with_any_storage(dtype, [&](auto storage) { value = widen<double>(cast<decltype(storage)>(value)); });
  return value;
}

class CudaConvolutions : public FakeCuda {
 protected:
  // Runs `desc` on the tensors; the first one receives the result.
  void run(const ep_primitive_desc& desc, const std::vector<Tensor*>& tensors,
           const std::vector<ep_scalar>& scalars = {}) {
    std::vector<ep_memory*> memory;
    for (const Tensor* each : tensors) memory.push_back(with(each->bytes));
    ASSERT_EQ(launch(desc, memory, scalars), EP_STATUS_OK) << cuda().host.sentence();
    tensors[0]->bytes = get<unsigned char>(memory[0], tensors[0]->bytes.size());
  }
};

using FakeCudaConvolutions = CudaConvolutions;

// `want` holds the exact sums at the offsets of `got`. The bytes between the elements must not change.
void expect_near(const Tensor& got, const std::map<int64_t, double>& want, const std::string& which) {
  // Half a unit in the last place for one rounding, plus the error of sums in f32.
  const double half = got.desc.dtype == EP_DTYPE_f32 ? 0 : got.desc.dtype == EP_DTYPE_bf16 ? 0x1p-8 : 0x1p-11;
  for (int64_t offset = 0; offset < extent(got.desc); ++offset) {
    const auto found = want.find(offset);
    if (found == want.end()) {
      ASSERT_EQ(got.get(offset), round_to(got.desc.dtype, 77)) << which << ": a gap was written";
    } else {
      ASSERT_NEAR(got.get(offset), found->second, half * std::abs(found->second) + 2e-5) << which;
    }
  }
}

struct Case {
  int32_t dtype;
  Order x, w, y;
};
std::vector<Case> cases() {
  std::vector<Case> all;
  for (const int32_t dtype : {EP_DTYPE_f32, EP_DTYPE_bf16, EP_DTYPE_f16}) {
    all.push_back({dtype, Order::PLANES, Order::PLANES, Order::PLANES});
    all.push_back({dtype, Order::CHANNELS_LAST, Order::CHANNELS_LAST, Order::CHANNELS_LAST});
    all.push_back({dtype, Order::CHANNELS_LAST, Order::PLANES, Order::CHANNELS_LAST});
    all.push_back({dtype, Order::GAPS, Order::PLANES, Order::CHANNELS_LAST});
    all.push_back({dtype, Order::PLANES, Order::GAPS, Order::GAPS});
  }
  return all;
}
std::string text_of(const Case& each) {
  return fmt::format("{} {}{}{}", dtype_name(each.dtype), static_cast<int>(each.x), static_cast<int>(each.w),
                     static_cast<int>(each.y));
}

// Only the bias with gaps; then also a relu, the sum with a tensor and a relu, or a maximum with a number, which
// cuDNN's graph does not support. At last a relu without a bias.
TEST_F(CudaConvolutions, ConvolutionsInEveryOrderWithWhatFollows) {
  for (const Case& each : cases()) {
    for (const int after : {0, 1, 2, 3, 4}) {
      Tensor x(EP_ROLE_SRC, each.dtype, x_dims, each.x, 1), w(EP_ROLE_WEIGHT, each.dtype, w_dims, each.w, 2);
      Tensor y(EP_ROLE_DST, each.dtype, y_dims, each.y, 3);
      const int64_t step = after == 0 ? 2 : 1;
      Tensor bias(EP_ROLE_BIAS, each.dtype, {outputs * step}, Order::PLANES, 4);
      bias.desc.dims[0] = outputs;
      bias.desc.strides[0] = step;
      Tensor added(EP_ROLE_EPILOGUE_0, each.dtype, y_dims, each.w, 5);
      std::vector<Tensor*> tensors = {&y, &x, &w};
      std::vector<ep_operand_desc> operands = {y.desc, x.desc, w.desc};
      if (after != 4) {
        operands.push_back(bias.desc);
        tensors.push_back(&bias);
      }
      if (after == 2) {
        operands.push_back(added.desc);
        tensors.push_back(&added);
      }
      ep_primitive_desc desc = descriptor(EP_PRIMITIVE_convolution, operands);
      set_window(&desc.attributes.convolution);
      std::vector<ep_scalar> scalars(5);
      scalars[4] = {each.dtype, 0, {.f64 = -0.5}};
      if (after == 2) desc.epilogues[desc.epilogue_count++] = {2, EP_BINARY_add, EP_ROLE_EPILOGUE_0, 0};
      const bool relu = after == 1 || after == 2 || after == 4;
      if (relu) desc.epilogues[desc.epilogue_count++] = {1, EP_UNARY_relu, 0, 0};
      if (after == 3) desc.epilogues[desc.epilogue_count++] = {2, EP_BINARY_maximum, 0, 4};
      std::map<int64_t, double> want;
      each_product([&](const Dims& i, const Dims& j, const Dims& k) {
        want[y.offset(k[0], k[1], k[2], k[3])] += x.at(i[0], i[1], i[2], i[3]) * w.at(j[0], j[1], j[2], j[3]);
      });
      for (int64_t place = 0; place < images * outputs * rows * columns; ++place) {
        const int64_t n = place / (outputs * rows * columns), o = place / (rows * columns) % outputs;
        const int64_t i = place / columns % rows, j = place % columns;
        double& value = want[y.offset(n, o, i, j)];
        if (after != 4) value += bias.get(o * step);
        if (after == 2) value += added.at(n, o, i, j);
        if (relu) value = std::max(value, 0.0);
        if (after == 3) value = std::max(value, -0.5);
      }
      run(desc, tensors, scalars);
      if (on_fake()) {
        EXPECT_EQ(made_by(), "cudnn") << text_of(each) << " " << after;
      }
      expect_near(y, want, fmt::format("{} {}", text_of(each), after));
    }
  }
}

TEST_F(CudaConvolutions, TransposedConvolutionsInEveryOrder) {
  for (const Case& each : cases()) {
    Tensor x(EP_ROLE_DST, each.dtype, x_dims, each.x, 1), w(EP_ROLE_WEIGHT, each.dtype, w_dims, each.w, 2);
    Tensor y(EP_ROLE_SRC, each.dtype, y_dims, each.y, 3), bias(EP_ROLE_BIAS, each.dtype, {channels}, Order::PLANES, 4);
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_convolution, {x.desc, y.desc, w.desc, bias.desc});
    set_window(&desc.attributes.convolution);
    desc.attributes.convolution.transposed = 1;
    std::map<int64_t, double> want;
    x.each([&](int64_t offset) { want[offset] = 0; });
    each_product([&](const Dims& i, const Dims& j, const Dims& k) {
      want[x.offset(i[0], i[1], i[2], i[3])] += y.at(k[0], k[1], k[2], k[3]) * w.at(j[0], j[1], j[2], j[3]);
    });
    for (int64_t place = 0; place < images * channels * height * width; ++place) {
      const int64_t n = place / (channels * height * width), c = place / (height * width) % channels;
      want[x.offset(n, c, place / width % height, place % width)] += bias.get(c);
    }
    run(desc, {&x, &y, &w, &bias});
    if (on_fake()) {
      EXPECT_EQ(made_by(), "cudnn") << text_of(each);
    }
    expect_near(x, want, text_of(each));
  }
}

TEST_F(CudaConvolutions, GradientsOfFiltersInEveryOrder) {
  for (const Case& each : cases()) {
    Tensor x(EP_ROLE_SRC, each.dtype, x_dims, each.x, 1), w(EP_ROLE_DST, each.dtype, w_dims, each.w, 2);
    Tensor y(EP_ROLE_GRADIENT, each.dtype, y_dims, each.y, 3);
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_convolution_weight, {w.desc, x.desc, y.desc});
    set_window(&desc.attributes.convolution_weight);
    std::map<int64_t, double> want;
    each_product([&](const Dims& i, const Dims& j, const Dims& k) {
      want[w.offset(j[0], j[1], j[2], j[3])] += x.at(i[0], i[1], i[2], i[3]) * y.at(k[0], k[1], k[2], k[3]);
    });
    run(desc, {&w, &x, &y});
    if (on_fake()) {
      EXPECT_EQ(made_by(), "cudnn") << text_of(each);
    }
    expect_near(w, want, text_of(each));
  }
}

// A NaN reaches the results that depend on it, through the relu, and no others.
TEST_F(CudaConvolutions, ConvolutionKeepsNaNWhereItIsSeen) {
  for (const int32_t dtype : {EP_DTYPE_f32, EP_DTYPE_bf16}) {
    Tensor x(EP_ROLE_SRC, dtype, {1, 8, 12, 12}, Order::PLANES, 1),
        w(EP_ROLE_WEIGHT, dtype, {8, 8, 3, 3}, Order::PLANES, 2);
    Tensor y(EP_ROLE_DST, dtype, {1, 8, 12, 12}, Order::PLANES, 3), bias(EP_ROLE_BIAS, dtype, {8}, Order::PLANES, 4);
    x.put(x.offset(0, 3, 5, 6), std::numeric_limits<double>::quiet_NaN());
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_convolution, {y.desc, x.desc, w.desc, bias.desc});
    ep_convolution_attributes& attributes = desc.attributes.convolution;
    attributes.spatial_rank = 2;
    attributes.groups = 1;
    for (size_t axis = 0; axis < 2; ++axis) {
      attributes.stride[axis] = attributes.dilation[axis] = attributes.pad_low[axis] = attributes.pad_high[axis] = 1;
    }
    desc.epilogues[desc.epilogue_count++] = {1, EP_UNARY_relu, 0, 0};
    run(desc, {&y, &x, &w, &bias});
    for (int64_t place = 0; place < 8 * 144; ++place) {
      const int64_t i = place / 12 % 12, j = place % 12;
      const bool seen = std::abs(i - 5) <= 1 && std::abs(j - 6) <= 1;
      ASSERT_EQ(std::isnan(y.at(0, place / 144, i, j)), seen) << dtype_name(dtype) << " " << place;
    }
  }
}

// A plain convolution of `dtype` whose source is repeated along `repeated`, unless that is -1.
ep_primitive_desc plain(int32_t dtype, int32_t repeated = -1) {
  Tensor x(EP_ROLE_SRC, dtype, x_dims, Order::PLANES, 1), w(EP_ROLE_WEIGHT, dtype, w_dims, Order::PLANES, 2);
  Tensor y(EP_ROLE_DST, dtype, y_dims, Order::PLANES, 3);
  if (repeated >= 0) x.desc.strides[repeated] = 0;
  ep_primitive_desc desc = descriptor(EP_PRIMITIVE_convolution, {y.desc, x.desc, w.desc});
  set_window(&desc.attributes.convolution);
  return desc;
}

// The gradient of that convolution's filter.
ep_primitive_desc gradient_of(const ep_primitive_desc& desc) {
  ep_primitive_desc made =
      descriptor(EP_PRIMITIVE_convolution_weight, {desc.operands[2], desc.operands[1], desc.operands[0]});
  made.operands[0].role = EP_ROLE_DST;
  made.operands[2].role = EP_ROLE_GRADIENT;
  set_window(&made.attributes.convolution_weight);
  return made;
}

// A convolution of 3 x 3 elements, or of one, on [images, 64, 64, 64].
ep_primitive_desc square(int32_t dtype, int64_t images, int64_t outputs, int64_t window, Order order, bool bias) {
  const Dims src = {images, 64, 64, 64}, dst = {images, outputs, 64, 64};
  std::vector<ep_operand_desc> operands = {strided(EP_ROLE_DST, dtype, dst, strides_of(dst, order)),
                                           strided(EP_ROLE_SRC, dtype, src, strides_of(src, order)),
                                           dense(EP_ROLE_WEIGHT, dtype, {outputs, 64, window, window})};
  if (bias) operands.push_back(dense(EP_ROLE_BIAS, dtype, {outputs}));
  ep_primitive_desc desc = descriptor(EP_PRIMITIVE_convolution, operands);
  ep_convolution_attributes& attributes = desc.attributes.convolution;
  attributes.spatial_rank = 2;
  attributes.groups = 1;
  for (size_t axis = 0; axis < 2; ++axis) {
    attributes.stride[axis] = attributes.dilation[axis] = 1;
    attributes.pad_low[axis] = attributes.pad_high[axis] = window / 2;
  }
  return desc;
}

TEST_F(FakeCudaConvolutions, ArePreferredAsProductsWhereThoseAreFaster) {
  const auto choice = [&](auto... values) { return implementation_of(square(values...)); };
  EXPECT_EQ(choice(EP_DTYPE_f32, 8, 256, 3, Order::PLANES, true), "matmul");
  EXPECT_EQ(choice(EP_DTYPE_f32, 8, 128, 3, Order::PLANES, true), "cudnn");
  EXPECT_EQ(choice(EP_DTYPE_f32, 8, 256, 3, Order::CHANNELS_LAST, true), "cudnn");
  EXPECT_EQ(choice(EP_DTYPE_f32, 64, 64, 1, Order::PLANES, false), "matmul");
  EXPECT_EQ(choice(EP_DTYPE_f32, 1, 64, 1, Order::PLANES, false), "cudnn");
  EXPECT_EQ(choice(EP_DTYPE_bf16, 64, 64, 1, Order::PLANES, true), "matmul");
  EXPECT_EQ(choice(EP_DTYPE_bf16, 64, 64, 1, Order::PLANES, false), "cudnn");
  EXPECT_EQ(choice(EP_DTYPE_bf16, 64, 64, 1, Order::CHANNELS_LAST, true), "cudnn");
  EXPECT_EQ(choice(EP_DTYPE_bf16, 8, 256, 3, Order::PLANES, true), "cudnn");
}

// Each element of the source produces a square of 2 x 2 results, or of 3 x 3 results that overlap.
ep_primitive_desc doubling(int32_t dtype, int64_t window) {
  ep_primitive_desc desc = descriptor(EP_PRIMITIVE_convolution,
                                      {dense(EP_ROLE_DST, dtype, {2, 6, 8, 8}), dense(EP_ROLE_SRC, dtype, {2, 4, 4, 4}),
                                       dense(EP_ROLE_WEIGHT, dtype, {4, 6, window, window})});
  ep_convolution_attributes& attributes = desc.attributes.convolution;
  attributes.spatial_rank = 2;
  attributes.transposed = attributes.groups = 1;
  for (size_t axis = 0; axis < 2; ++axis) {
    attributes.stride[axis] = 2;
    attributes.dilation[axis] = 1;
    attributes.pad_low[axis] = window - 2;
  }
  return desc;
}

TEST_F(FakeCudaConvolutions, TransposedOfPiecesSideBySideAreProducts) {
  EXPECT_EQ(implementation_of(doubling(EP_DTYPE_f32, 2)), "matmul");
  EXPECT_EQ(implementation_of(doubling(EP_DTYPE_f32, 3)), "cudnn");
  EXPECT_EQ(implementation_of(doubling(EP_DTYPE_bf16, 2)), "cudnn");
}

TEST_F(FakeCudaConvolutions, LeaveSomeToTheMatrixProduct) {
  EXPECT_EQ(implementation_of(plain(EP_DTYPE_f32)), "cudnn");
  EXPECT_EQ(implementation_of(plain(EP_DTYPE_f64)), "matmul");
  EXPECT_EQ(implementation_of(plain(EP_DTYPE_f32, 0)), "matmul");
  ep_primitive_desc huge = plain(EP_DTYPE_f32);
  huge.operands[0].dims[0] = huge.operands[1].dims[0] = int64_t{1} << 40;
  EXPECT_EQ(implementation_of(huge), "matmul");
  ep_primitive_desc beyond = gradient_of(plain(EP_DTYPE_f32));
  beyond.operands[1].dims[2] += 2;
  EXPECT_NE(implementation_of(beyond).find("6 windows fit along axis 0, not 5"), std::string::npos)
      << implementation_of(beyond);
}

// A setting of the fake cuDNN for the rest of a test.
class FakeSetting {
 public:
  FakeSetting(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~FakeSetting() { unsetenv(name_); }
  FakeSetting(const FakeSetting&) = delete;
  FakeSetting& operator=(const FakeSetting&) = delete;

 private:
  const char* name_;
};

TEST_F(FakeCudaConvolutions, WantVersion9) {
  const FakeSetting old("FAKE_CUDNN_VERSION", "8907");
  EXPECT_EQ(implementation_of(plain(EP_DTYPE_f32)), "matmul");
  EXPECT_NE(
      implementation_of(gradient_of(plain(EP_DTYPE_f32))).find("libcudnn.so.9 is cuDNN 8.9.7, and 9.0.0 is needed"),
      std::string::npos);
}

TEST_F(FakeCudaConvolutions, RunAsProductsIfTheLibraryDoesNotStart) {
  const FakeSetting broken("FAKE_CUDNN_CREATE", "1001");
  const ep_primitive_desc desc = plain(EP_DTYPE_f32);
  EXPECT_EQ(launch(desc, {block(4096), block(4096), block(4096)}), EP_STATUS_OK) << cuda().host.sentence();
  EXPECT_EQ(made_by(), "matmul");
  EXPECT_EQ(launch(gradient_of(desc), {block(4096), block(4096), block(4096)}), EP_STATUS_UNSUPPORTED);
  EXPECT_NE(cuda().host.sentence().find("libcudnn.so.9 does not start"), std::string::npos) << cuda().host.sentence();
}

TEST_F(FakeCudaConvolutions, AFailureNamesTheCallAndTheShapes) {
  fake().fail_cudnn = 5000;
  EXPECT_EQ(launch(plain(EP_DTYPE_f32), {block(4096), block(4096), block(4096)}), EP_STATUS_INTERNAL);
  EXPECT_EQ(
      cuda().host.sentence(),
      "cuDNN failed on a convolution of images, filter and response f32 [2, 4, 9, 8], f32 [6, 2, 3, 2], f32 [2, 6, "
      "5, 6]: cudnnBackendExecute: an error (5000): the test wants it to fail.");
  fake().fail_cudnn = 4004;
  EXPECT_EQ(launch(plain(EP_DTYPE_f32), {block(4096), block(4096), block(4096)}), EP_STATUS_OUT_OF_DEVICE_MEMORY);
}

}  // namespace
}  // namespace tenon::provider::cuda
