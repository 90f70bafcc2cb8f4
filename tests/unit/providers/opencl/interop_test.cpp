// An application with its own cl_context, in which Tenon runs: buffers, queues and events of the application, in both
// directions. The application's kernels and the double-precision references here are independent of the provider's.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cmath>
#include <random>
#include <thread>

#define CL_TARGET_OPENCL_VERSION 120
#include <CL/cl.h>

#include "core/ops/ops.h"
#include "core/tensor/native.h"
#include "core/tensor/stream.h"
#include "tests/unit/tensor/expect_error.h"
#include "tests/unit/tensor/lent_memory.h"

namespace tenon::testing {
namespace {

#define CALL(name) reinterpret_cast<decltype(&::name)>(function(#name))

void* function(const char* name) {
  static void* const library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_LOCAL);
  void* found = library == nullptr ? nullptr : dlsym(library, name);
  if (found == nullptr) ADD_FAILURE() << "libOpenCL.so.1 has no " << name;
  return found;
}

constexpr const char* kSource = R"(
kernel void slow_scale(global float* data, float factor, int steps) {
  const size_t i = get_global_id(0);
  float x = data[i];
  for (int k = 0; k < steps; ++k) x = x * 0.5f + x * 0.5f;
  data[i] = x * factor;
})";

// The application: its own contexts, queues, buffers and a kernel.
class Application {
 public:
  Application() {
    cl_platform_id platform = nullptr;
    EXPECT_EQ(CALL(clGetPlatformIDs)(1, &platform, nullptr), CL_SUCCESS);
    EXPECT_EQ(CALL(clGetDeviceIDs)(platform, CL_DEVICE_TYPE_ALL, 1, &device, nullptr), CL_SUCCESS);
    context = CALL(clCreateContext)(nullptr, 1, &device, nullptr, nullptr, nullptr);
    queue = make_queue(context);
    cl_program program =
        CALL(clCreateProgramWithSource)(context, 1, const_cast<const char**>(&kSource), nullptr, nullptr);
    EXPECT_EQ(CALL(clBuildProgram)(program, 1, &device, "", nullptr, nullptr), CL_SUCCESS);
    kernel = CALL(clCreateKernel)(program, "slow_scale", nullptr);
    CALL(clReleaseProgram)(program);
  }
  cl_command_queue make_queue(cl_context in, cl_command_queue_properties properties = 0) const {
    return CALL(clCreateCommandQueue)(in, device, properties, nullptr);
  }
  cl_mem make_buffer(const std::vector<float>& values, cl_mem_flags flags = CL_MEM_READ_WRITE) const {
    return CALL(clCreateBuffer)(context, flags | CL_MEM_COPY_HOST_PTR, values.size() * sizeof(float),
                                const_cast<float*>(values.data()), nullptr);
  }
  void write(cl_command_queue on, cl_mem buffer, const std::vector<float>& values) const {
    EXPECT_EQ(CALL(clEnqueueWriteBuffer)(on, buffer, CL_TRUE, 0, values.size() * sizeof(float), values.data(), 0,
                                         nullptr, nullptr),
              CL_SUCCESS);
  }
  std::vector<float> read(cl_mem buffer, size_t count, size_t offset = 0) const {
    std::vector<float> values(count, -77.0f);
    EXPECT_EQ(CALL(clEnqueueReadBuffer)(queue, buffer, CL_TRUE, offset, count * sizeof(float), values.data(), 0,
                                        nullptr, nullptr),
              CL_SUCCESS);
    return values;
  }
  // Enqueues data[i] *= factor, which takes long.
  void enqueue_scale(cl_mem buffer, size_t count, float factor) const {
    constexpr cl_int steps = 2000;
    CALL(clSetKernelArg)(kernel, 0, sizeof buffer, &buffer);
    CALL(clSetKernelArg)(kernel, 1, sizeof factor, &factor);
    CALL(clSetKernelArg)(kernel, 2, sizeof steps, &steps);
    EXPECT_EQ(CALL(clEnqueueNDRangeKernel)(queue, kernel, 1, nullptr, &count, nullptr, 0, nullptr, nullptr),
              CL_SUCCESS);
    CALL(clFlush)(queue);
  }
  template <class T, class Get, class Object>
  static T ask(Get get, Object object, cl_uint what) {
    T value{};
    EXPECT_EQ(get(object, what, sizeof value, &value, nullptr), CL_SUCCESS);
    return value;
  }
  static cl_uint users(cl_mem buffer) { return ask<cl_uint>(CALL(clGetMemObjectInfo), buffer, CL_MEM_REFERENCE_COUNT); }
  static cl_uint users(cl_command_queue queue) {
    return ask<cl_uint>(CALL(clGetCommandQueueInfo), queue, CL_QUEUE_REFERENCE_COUNT);
  }
  static cl_uint users(cl_context context) {
    return ask<cl_uint>(CALL(clGetContextInfo), context, CL_CONTEXT_REFERENCE_COUNT);
  }

  cl_device_id device = nullptr;
  cl_context context = nullptr;
  cl_command_queue queue = nullptr;
  cl_kernel kernel = nullptr;
};

std::vector<float> relu_of(std::vector<float> values) {
  for (float& value : values) value = std::max(value, 0.0f);
  return values;
}

void expect_product(const std::vector<float>& result, const std::vector<float>& a, const std::vector<float>& b, int n) {
  for (int i = 0; i < n; ++i) {
    for (int j = 0; j < n; ++j) {
      double sum = 0, size = 0;
      for (int k = 0; k < n; ++k) {
        const double product = double{a[size_t(i * n + k)]} * b[size_t(k * n + j)];
        sum += product;
        size += std::abs(product);
      }
      ASSERT_NEAR(result[size_t(i * n + j)], sum, 1e-6 * size) << i << ", " << j;
    }
  }
}

class OpenClInterop : public ::testing::Test {
 protected:
  static Application& app() {
    static auto* one = new Application;
    return *one;
  }
  static Device device() {
    static const Device adopted = adopt_device("opencl:0", NativeContext::opencl(app().context));
    return adopted;
  }
  static Tensor tensor_of(cl_mem buffer, const Dims& dims) {
    NativeMemory memory{{HandleType::cl_mem, buffer}, static_cast<uint64_t>(element_count(dims)) * sizeof(float)};
    return tensor_over(device(), memory, dims, {}, DType::f32);
  }
  std::vector<float> random(size_t count) { return random_floats(random_, count); }

  std::mt19937_64 random_{11};
};

TEST_F(OpenClInterop, AContextIsAdoptedBeforeTheDeviceIsUsed) {
  expect_error([] { adopt_device("opencl:0", NativeContext::opencl(nullptr)); }, Code::invalid_argument, {"NULL"});
  const cl_uint before = Application::users(app().context);
  EXPECT_EQ(device().spelling(), "opencl:0");
  EXPECT_GT(Application::users(app().context), before);
  expect_error([] { adopt_device("opencl:0", NativeContext::opencl(app().context)); }, Code::busy, {"open already"});
}

TEST_F(OpenClInterop, ABufferIsReadAndWrittenInPlace) {
  constexpr int n = 48;
  const std::vector<float> a = random(n * n), b = random(n * n);
  cl_mem lhs = app().make_buffer(a), rhs = app().make_buffer(b), out = app().make_buffer(random(n * n));
  const Tensor left = tensor_of(lhs, {n, n}), right = tensor_of(rhs, {n, n});
  Tensor result = tensor_of(out, {n, n});
  EXPECT_EQ(left.to_host<float>(), a);
  copy_from(result, matmul(left, right));
  result.wait();
  expect_product(app().read(out, n * n), a, b, n);
  relu_(result);
  Stream::current(device()).release({result});
  device().synchronize();
  const std::vector<float> product = app().read(out, n * n);
  EXPECT_GE(*std::min_element(product.begin(), product.end()), 0.0f);
  app().write(app().queue, lhs, b);  // no work of Tenon is in flight
  EXPECT_EQ(neg(left).to_host<float>()[5], -b[5]);
  for (cl_mem buffer : {lhs, rhs, out}) CALL(clReleaseMemObject)(buffer);
}

TEST_F(OpenClInterop, AnImportRetainsTheBufferAndGivesItBack) {
  cl_mem buffer = app().make_buffer(random(64));
  const cl_uint before = Application::users(buffer);
  {
    const Tensor tensor = tensor_of(buffer, {64});
    EXPECT_EQ(Application::users(buffer), before + 1);
  }
  device().synchronize();
  EXPECT_EQ(Application::users(buffer), before);
  const std::vector<float> given = random(64);
  cl_mem gone = app().make_buffer(given);
  const Tensor tensor = tensor_of(gone, {64});
  CALL(clReleaseMemObject)(gone);
  EXPECT_EQ(relu(tensor).to_host<float>(), relu_of(given));
  CALL(clReleaseMemObject)(buffer);
}

TEST_F(OpenClInterop, AnImportedQueueOrdersTheWorkOfBothSides) {
  constexpr size_t count = 4096;
  const cl_uint before = Application::users(app().queue);
  const Stream stream = Stream::over(device(), {HandleType::cl_queue, app().queue});
  EXPECT_EQ(Application::users(app().queue), before + 1);
  cl_mem buffer = app().make_buffer(random(count));
  Tensor tensor = tensor_of(buffer, {count});
  for (int round = 0; round < 10; ++round) {
    const std::vector<float> given = random(count);
    app().write(app().queue, buffer, given);
    app().enqueue_scale(buffer, count, -2.0f);  // still runs when Tenon's ops are called
    stream.acquire({tensor});
    Tensor elsewhere = relu(tensor);  // a result of another stream
    {
      const StreamScope scope(stream);
      relu_(tensor);
    }
    stream.release({tensor});
    stream.flush();
    app().enqueue_scale(buffer, count, 0.5f);  // after Tenon's work
    std::vector<float> scaled = given;
    for (float& value : scaled) value *= -2.0f;
    std::vector<float> expected = relu_of(scaled);
    EXPECT_EQ(elsewhere.to_host<float>(), expected) << "round " << round;
    for (float& value : expected) value *= 0.5f;
    ASSERT_EQ(app().read(buffer, count), expected) << "round " << round;
    stream.acquire({tensor});
    ASSERT_EQ(tensor.to_host<float>(), expected) << "round " << round;
  }
  CALL(clReleaseMemObject)(buffer);
}

TEST_F(OpenClInterop, AnEventOfTheApplicationHoldsOpsBack) {
  cl_command_queue other = app().make_queue(app().context);
  cl_mem buffer = app().make_buffer(random(256));
  Tensor tensor = tensor_of(buffer, {256});
  for (int round = 0; round < 10; ++round) {
    cl_event event = CALL(clCreateUserEvent)(app().context, nullptr);
    Stream::current(device()).wait(Semaphore(device(), {HandleType::cl_event, event}, SemaphoreKind::event), 0,
                                   {tensor});
    const Tensor result = relu(tensor);
    std::this_thread::sleep_for(std::chrono::milliseconds(round % 3));
    const std::vector<float> given = random(256);
    app().write(other, buffer, given);
    CALL(clSetUserEventStatus)(event, CL_COMPLETE);
    CALL(clReleaseEvent)(event);
    ASSERT_EQ(result.to_host<float>(), relu_of(given)) << "round " << round;
  }
  cl_event event = CALL(clCreateUserEvent)(app().context, nullptr);
  const Semaphore semaphore(device(), {HandleType::cl_event, event}, SemaphoreKind::event);
  expect_error([&] { Stream::current(device()).signal(semaphore); }, Code::invalid_argument, {"only be waited for"});
  CALL(clSetUserEventStatus)(event, CL_COMPLETE);
  CALL(clReleaseEvent)(event);
  CALL(clReleaseCommandQueue)(other);
  CALL(clReleaseMemObject)(buffer);
}

TEST_F(OpenClInterop, ABlockOfTenonsIsABufferForTheApplication) {
  const std::vector<float> given = random(96);
  Tensor tensor = Tensor::from<float>(given, {8, 12}, device());
  const NativePlace place = native_place(slice(tensor, 0, 3, 5));
  ASSERT_EQ(place.handle.type, HandleType::cl_mem);
  auto* buffer = reinterpret_cast<cl_mem>(place.handle.value);
  EXPECT_EQ(app().read(buffer, 24, place.offset), std::vector<float>(given.begin() + 36, given.begin() + 60));
  const std::vector<float> sent = random(24);
  EXPECT_EQ(
      CALL(clEnqueueWriteBuffer)(app().queue, buffer, CL_TRUE, place.offset, 96, sent.data(), 0, nullptr, nullptr),
      CL_SUCCESS);
  EXPECT_EQ(slice(tensor, 0, 3, 5).to_host<float>(), sent);
}

TEST_F(OpenClInterop, RefusalsNameTheReasonAndKeepNothing) {
  cl_context foreign = CALL(clCreateContext)(nullptr, 1, &app().device, nullptr, nullptr, nullptr);
  cl_mem theirs = CALL(clCreateBuffer)(foreign, CL_MEM_READ_WRITE, 256, nullptr, nullptr);
  cl_command_queue their_queue = app().make_queue(foreign);
  cl_event their_event = CALL(clCreateUserEvent)(foreign, nullptr);
  cl_mem buffer = app().make_buffer(random(64)), read_only = app().make_buffer(random(64), CL_MEM_READ_ONLY);
  const cl_uint before = Application::users(buffer);
  expect_error([&] { tensor_of(theirs, {64}); }, Code::invalid_argument, {"cl_mem belongs to another cl_context"});
  expect_error([&] { tensor_of(buffer, {65}); }, Code::invalid_argument, {"260 bytes", "the cl_mem has 256"});
  expect_error([&] { tensor_of(read_only, {64}); }, Code::unsupported, {"only read the cl_mem"});
  expect_error([&] { tensor_of(nullptr, {64}); }, Code::invalid_argument, {"cl_mem", "NULL"});
  expect_error(
      [&] {
        Stream::over(device(), {HandleType::cl_queue, their_queue});
      },
      Code::invalid_argument, {"cl_command_queue belongs to another cl_context"});
  expect_error(
      [&] {
        Stream::over(device(), {HandleType::cuda_stream, their_queue});
      },
      Code::unsupported, {"cuda_stream", "it accepts cl_queue"});
  expect_error(
      [&] {
        Semaphore(device(), {HandleType::cl_event, their_event}, SemaphoreKind::event);
      },
      Code::invalid_argument, {"cl_event belongs to another cl_context"});
  if (cl_command_queue loose = app().make_queue(app().context, CL_QUEUE_OUT_OF_ORDER_EXEC_MODE_ENABLE)) {
    expect_error(
        [&] {
          Stream::over(device(), {HandleType::cl_queue, loose});
        },
        Code::invalid_argument, {"out of order"});
    EXPECT_EQ(Application::users(loose), 1u);
    CALL(clReleaseCommandQueue)(loose);
  }
  std::array<float, 65> memory{};
  cl_mem odd =
      CALL(clCreateBuffer)(app().context, CL_MEM_READ_WRITE | CL_MEM_USE_HOST_PTR, 256, memory.data() + 1, nullptr);
  if (reinterpret_cast<uintptr_t>(memory.data() + 1) % 256 != 0) {
    expect_error([&] { tensor_of(odd, {64}); }, Code::unsupported, {"past a multiple of 256"});
  }
  EXPECT_EQ(Application::users(buffer), before);
  EXPECT_EQ(Application::users(theirs), 1u);
  EXPECT_EQ(Application::users(their_queue), 1u);
  CALL(clSetUserEventStatus)(their_event, CL_COMPLETE);
  CALL(clReleaseEvent)(their_event);
  CALL(clReleaseCommandQueue)(their_queue);
  for (cl_mem each : {theirs, buffer, read_only, odd}) CALL(clReleaseMemObject)(each);
  CALL(clReleaseContext)(foreign);
}

// Must be the last test: the device of the other tests is gone afterwards.
TEST_F(OpenClInterop, RetiringGivesTheContextBackAndAnotherCanBeAdopted) {
  device();
  retire("opencl");
  EXPECT_EQ(Application::users(app().queue), 1u);
  cl_context second = CALL(clCreateContext)(nullptr, 1, &app().device, nullptr, nullptr, nullptr);
  {
    const Device again = adopt_device("opencl:0", NativeContext::opencl(second));
    const std::vector<float> given = random(64);
    EXPECT_EQ(relu(Tensor::from<float>(given, {64}, again)).to_host<float>(), relu_of(given));
  }
  retire("opencl");
  EXPECT_EQ(Application::users(second), 1u);
  CALL(clReleaseContext)(second);
}

}  // namespace
}  // namespace tenon::testing
