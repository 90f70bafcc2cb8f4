// The kernels and geometries of launches, and the calls of cuBLASLt for matmul, on the fakes.
#include <cmath>
#include <cstring>

#include "providers/cuda/kernels/arguments.h"
#include "tests/unit/providers/cuda/fixture.h"

namespace tenon::provider::cuda {
namespace {

using fakes::cuda::Launch;

class FakeCudaLaunches : public FakeCuda {
 protected:
  // The launches of one primitive. They do not touch memory.
  std::vector<Launch> launches_of(const ep_primitive_desc& desc, const std::vector<ep_memory*>& operands) {
    fake().record = true;
    fake().run_kernels = false;
    const size_t before = fake().recorded().size();
    EXPECT_EQ(launch(desc, operands), EP_STATUS_OK) << cuda().host.sentence();
    std::vector<Launch> all = fake().recorded();
    return {all.begin() + static_cast<std::ptrdiff_t>(before), all.end()};
  }
  template <class Arguments>
  static Arguments arguments_of(const Launch& launch) {
    Arguments arguments;
    EXPECT_EQ(launch.arguments.size(), sizeof arguments);
    std::memcpy(&arguments, launch.arguments.data(), sizeof arguments);
    return arguments;
  }
  static ep_primitive_desc relu(int32_t dtype, const std::vector<int64_t>& dims) {
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_unary, {dense(EP_ROLE_DST, dtype, dims), dense(EP_ROLE_SRC, dtype, dims)});
    desc.attributes.unary.op = EP_UNARY_relu;
    return desc;
  }
};

TEST_F(FakeCudaLaunches, AChunkOfFourPerThread) {
  const std::vector<Launch> launches = launches_of(relu(EP_DTYPE_f32, {1, 5000}), {block(20000), block(20000)});
  ASSERT_EQ(launches.size(), 1U);
  EXPECT_EQ(launches[0].kernel, "unary_relu_f32");
  EXPECT_EQ(launches[0].block, 256U);
  EXPECT_EQ(launches[0].grid, 5U);  // 1250 chunks
  const auto map = arguments_of<MapArguments>(launches[0]);
  EXPECT_EQ(map.chunks, 1250U);
  EXPECT_EQ(map.rank, 1);
  EXPECT_EQ(map.operands[0].vector, 1);
  EXPECT_EQ(map.operands[1].vector, 1);
}

TEST_F(FakeCudaLaunches, NarrowTypesShareTheirClassesKernel) {
  EXPECT_EQ(launches_of(relu(EP_DTYPE_bf16, {64}), {block(128), block(128)})[0].kernel, "unary_relu_f32");
  EXPECT_EQ(launches_of(relu(EP_DTYPE_i16, {64}), {block(128), block(128)})[0].kernel, "unary_i64");
  EXPECT_EQ(launches_of(relu(EP_DTYPE_u8, {64}), {block(64), block(64)})[0].kernel, "unary_u64");
  EXPECT_EQ(launches_of(relu(EP_DTYPE_f64, {64}), {block(512), block(512)})[0].kernel, "unary_f64");
}

// 2^33 elements have more chunks than 32 bits can number. Nothing is read, so the memory need not exist.
TEST_F(FakeCudaLaunches, HugeTensorsAreCut) {
  fake().memory = uint64_t{1} << 50;
  const int64_t count = int64_t{1} << 34;
  ep_memory* memory = block(64);
  const std::vector<Launch> launches = launches_of(relu(EP_DTYPE_i8, {count}), {memory, memory});
  ASSERT_GT(launches.size(), 1U);
  int64_t elements = 0;
  uint64_t next = arguments_of<MapArguments>(launches[0]).operands[0].address;
  for (const Launch& one : launches) {
    const auto map = arguments_of<MapArguments>(one);
    EXPECT_LT(map.chunks, uint64_t{1} << 31);
    EXPECT_EQ(map.operands[0].address, next);
    EXPECT_LE(one.grid, 0x7fffffffU);
    next += static_cast<uint64_t>(map.inner);
    elements += map.inner;
  }
  EXPECT_EQ(elements, count);
}

TEST_F(FakeCudaLaunches, ALongReductionRunsInTwoSteps) {
  ep_primitive_desc desc = descriptor(
      EP_PRIMITIVE_reduce, {dense(EP_ROLE_DST, EP_DTYPE_f32, {1}), dense(EP_ROLE_SRC, EP_DTYPE_f32, {1 << 20})});
  desc.attributes.reduce = {EP_REDUCE_mean, 1};
  const std::vector<Launch> launches = launches_of(desc, {block(256), block(4 << 20)});
  ASSERT_EQ(launches.size(), 2U);
  EXPECT_EQ(launches[0].kernel, "reduce_mean_f32_block");
  const auto first = arguments_of<ReduceArguments>(launches[0]);
  const auto second = arguments_of<ReduceArguments>(launches[1]);
  EXPECT_EQ(launches[0].grid, static_cast<uint64_t>(first.parts));
  EXPECT_EQ(first.vector, 1);
  EXPECT_EQ(second.second, 1);
  EXPECT_EQ(second.src, first.dst);
  EXPECT_EQ(second.finish_count, 1 << 20);
}

TEST_F(FakeCudaLaunches, SoftmaxKeepsRowsInRegistersWhereTheyFit) {
  const auto kernel = [&](int64_t rows, int64_t length) {
    ep_primitive_desc desc = descriptor(EP_PRIMITIVE_softmax, {dense(EP_ROLE_DST, EP_DTYPE_f32, {rows, length}),
                                                               dense(EP_ROLE_SRC, EP_DTYPE_f32, {rows, length})});
    desc.attributes.softmax = {1, 0};
    const auto bytes = static_cast<uint64_t>(rows * length * 4);
    return launches_of(desc, {block(bytes), block(bytes)})[0];
  };
  EXPECT_EQ(kernel(7, 512).kernel, "softmax_f32_warp_held");
  EXPECT_EQ(kernel(17, 512).grid, 3U);
  EXPECT_EQ(kernel(7, 1024).kernel, "softmax_f32_warp_held_long");
  EXPECT_EQ(kernel(7, 1025).kernel, "softmax_f32_block_held");
  EXPECT_EQ(kernel(7, 4097).kernel, "softmax_f32_block_held_long");
  EXPECT_EQ(kernel(7, 16385).kernel, "softmax_f32_block");
}

// Neighbouring elements of a narrow type move as one element of up to 4 bytes, if every stride is a multiple.
TEST_F(FakeCudaLaunches, NarrowElementsMoveTogether) {
  const auto gather = [&](int64_t width, int64_t pitch) {
    ep_primitive_desc desc =
        descriptor(EP_PRIMITIVE_gather, {dense(EP_ROLE_DST, EP_DTYPE_f16, {3, width}),
                                         strided(EP_ROLE_SRC, EP_DTYPE_f16, {5, width}, {pitch, 1}),
                                         dense(EP_ROLE_INDICES, EP_DTYPE_i64, {3})});
    desc.attributes.gather = {0, EP_GATHER_SLICES};
    return launches_of(desc, {block(4096), block(4096), block(24)})[0];
  };
  EXPECT_EQ(gather(32, 32).kernel, "gather_4");
  EXPECT_EQ(arguments_of<IndexArguments>(gather(32, 32)).strides[0], 16);
  EXPECT_EQ(arguments_of<IndexArguments>(gather(32, 32)).map.operands[1].vector, 1);
  EXPECT_EQ(arguments_of<IndexArguments>(gather(32, 34)).map.operands[1].vector, 0);
  EXPECT_EQ(gather(32, 33).kernel, "gather_2");
  EXPECT_EQ(gather(31, 32).kernel, "gather_2");
  ep_primitive_desc concat = descriptor(
      EP_PRIMITIVE_concat, {dense(EP_ROLE_DST, EP_DTYPE_u8, {2, 12}), dense(EP_ROLE_SRC_0, EP_DTYPE_u8, {2, 8}),
                            dense(EP_ROLE_SRC_0 + 1, EP_DTYPE_u8, {2, 4})});
  concat.attributes.concat.axis = 1;
  const std::vector<Launch> parts = launches_of(concat, {block(24), block(16), block(8)});
  ASSERT_EQ(parts.size(), 2U);
  EXPECT_EQ(parts[0].kernel, "bits_4");
  EXPECT_EQ(parts[1].kernel, "bits_4");
}

TEST_F(FakeCudaLaunches, NormsKeepRowsOrTheirPartsInRegisters) {
  const auto kernel = [&](int64_t length, int32_t dtype, int64_t pitch) {
    ep_primitive_desc desc = descriptor(
        EP_PRIMITIVE_layer_norm,
        {strided(EP_ROLE_DST, dtype, {7, length}, {pitch, 1}), strided(EP_ROLE_SRC, dtype, {7, length}, {pitch, 1})});
    desc.attributes.layer_norm.axis = 1;
    fake().record = true;
    fake().run_kernels = false;
    const auto bytes = static_cast<uint64_t>(7 * pitch * 8);
    EXPECT_EQ(launch(desc, {block(bytes), block(bytes)}, {{EP_DTYPE_f32, 0, {.f64 = 1e-5}}}), EP_STATUS_OK);
    return fake().recorded().back().kernel;
  };
  EXPECT_EQ(kernel(512, EP_DTYPE_f32, 512), "norm_f32_warp_held");
  EXPECT_EQ(kernel(768, EP_DTYPE_f16, 800), "norm_f32_warp_held_long");
  EXPECT_EQ(kernel(4096, EP_DTYPE_bf16, 4096), "norm_f32_block_held");
  EXPECT_EQ(kernel(4097, EP_DTYPE_f32, 4097), "norm_f32_block_held_long");
  EXPECT_EQ(kernel(16385, EP_DTYPE_f32, 16385), "norm_f32_block_parts");
  EXPECT_EQ(kernel(512, EP_DTYPE_f64, 512), "norm_f64_warp");
  EXPECT_EQ(kernel(16385, EP_DTYPE_f64, 16385), "norm_f64_block");
}

TEST_F(FakeCudaLaunches, ALaunchThatFailsIsAnErrorOfTheCall) {
  fake().fail_launch = CUDA_ERROR_UNKNOWN;
  ep_memory* memory = block(1024);
  EXPECT_EQ(launch(relu(EP_DTYPE_f32, {64}), {memory, memory}), EP_STATUS_INTERNAL);
  EXPECT_EQ(cuda().host.sentence(), "Fake GPU 0 failed while launching a kernel: CUDA_ERROR_UNKNOWN.");
  EXPECT_EQ(launch(relu(EP_DTYPE_f32, {64}), {memory, memory}), EP_STATUS_OK);
}

// --- matmul ---

ep_primitive_desc product(int32_t dtype, int64_t m, int64_t n, int64_t k, int32_t alignment) {
  ep_primitive_desc desc = descriptor(
      EP_PRIMITIVE_matmul,
      {dense(EP_ROLE_DST, dtype, {m, n}), dense(EP_ROLE_SRC, dtype, {m, k}), dense(EP_ROLE_SRC_B, dtype, {k, n})});
  for (int i = 0; i < 3; ++i) desc.operands[i].alignment = alignment;
  return desc;
}

TEST_F(FakeCudaLaunches, MatmulGoesToCublasLt) {
  const int64_t m = 5, n = 7, k = 11;
  const ep_primitive_desc desc = product(EP_DTYPE_f32, m, n, k, 16);
  EXPECT_EQ(implementation_of(desc), "cublaslt");
  const std::vector<float> a = random_floats(m * k, 1);
  const std::vector<float> b = random_floats(k * n, 2);
  ep_memory* result = block(m * n * 4);
  const uint64_t kernels = fake().launches.load();
  ASSERT_EQ(launch(desc, {result, with(a), with(b)}), EP_STATUS_OK) << cuda().host.sentence();
  const std::vector<float> got = get<float>(result, m * n);
  EXPECT_EQ(fake().launches.load(), kernels);  // the provider launched no kernel of its own
  for (int64_t row = 0; row < m; ++row) {
    for (int64_t column = 0; column < n; ++column) {
      double want = 0;
      for (int64_t i = 0; i < k; ++i) want += static_cast<double>(a[row * k + i]) * b[i * n + column];
      EXPECT_NEAR(got[row * n + column], want, 1e-5);
    }
  }
}

// The library only reports that it failed. The driver reports that the device is lost.
TEST_F(FakeCudaLaunches, MatmulOnALostDeviceIsNoDefectOfTheLibrary) {
  const ep_primitive_desc desc = product(EP_DTYPE_f32, 4, 4, 4, 16);
  const std::vector<float> values = random_floats(16);
  ep_memory* memory = with(values);
  ep_primitive* matmul = nullptr;
  ep_primitive_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_PRIMITIVE_INFO;
  ASSERT_EQ(cuda().ops.primitive_create(cuda().device, &desc, &matmul, &info, nullptr), EP_STATUS_OK);
  const ep_buffer buffers[3] = {{block(64), 0}, {memory, 0}, {memory, 0}};
  ep_launch run{};
  run.operands = buffers;
  run.operand_count = 3;
  run.workspace = {block(info.workspace_bytes), 0};
  fake().lost = CUDA_ERROR_ILLEGAL_ADDRESS;
  ep_error* error = nullptr;
  EXPECT_EQ(cuda().ops.primitive_launch(matmul, cuda().stream, &run, nullptr, &error), EP_STATUS_DEVICE_LOST);
  fake().lost = 0;
  cuda().ops.primitive_destroy(cuda().device, matmul);
}

TEST_F(FakeCudaLaunches, MatmulOfIntegersIsOurs) {
  const ep_primitive_desc desc = product(EP_DTYPE_i32, 4, 4, 4, 0);
  EXPECT_EQ(implementation_of(desc), "plain");
  EXPECT_EQ(launches_of(desc, {block(64), block(64), block(64)})[0].kernel, "matmul_i64");
}

}  // namespace
}  // namespace tenon::provider::cuda
