// Tensors, ops, programs and devices through the C API, against the C++ API.
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>

#include "core/ops/ops.h"
#include "loader/log/log.h"
#include "primitives/dtype/dtype.h"
#include "tests/unit/c/handles.h"

namespace tenon::c {
namespace {

const tenon_op* op(const char* name) {
  const tenon_op* found = nullptr;
  EXPECT_EQ(tenon_op_find(name, &found, nullptr), TENON_OK);
  return found;
}

tenon_argument tensor_argument(const tenon_tensor* tensor, const char* name = nullptr) {
  tenon_argument argument{};
  argument.name = name;
  argument.kind = TENON_ARGUMENT_TENSOR;
  argument.value.tensor = tensor;
  return argument;
}

tenon_argument integer_argument(int64_t value, const char* name = nullptr, int32_t kind = TENON_ARGUMENT_INTEGER) {
  tenon_argument argument{};
  argument.name = name;
  argument.kind = kind;
  argument.value.integer = value;
  return argument;
}

TensorHandle call(const char* name, const std::vector<tenon_argument>& arguments) {
  tenon_tensor* result = nullptr;
  size_t count = 0;
  Caught error;
  EXPECT_EQ(tenon_op_call(op(name), arguments.data(), arguments.size(), &result, 1, &count, error.out()), TENON_OK)
      << error.text();
  EXPECT_EQ(count, 1u);
  return TensorHandle(result);
}

TEST(CTensors, EveryDtypeKeepsItsBits){
#define EP_DTYPE(name, id, bits, type_class)                                                             \
  {                                                                                                      \
    const int64_t dims[] = {2, 8};                                                                       \
    std::vector<uint8_t> bytes(static_cast<size_t>(16 * bits / 8)), back(bytes.size());                  \
    for (size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<uint8_t>(id == 1 ? i % 2 : 37 * i); \
    const TensorHandle x = made<TensorHandle>([&](auto out, auto error) {                                \
      return tenon_tensor_copy(bytes.data(), bytes.size(), id, 2, dims, nullptr, out, error);            \
    });                                                                                                  \
    tenon_tensor_info info = TENON_INIT(tenon_tensor_info);                                              \
    ASSERT_EQ(tenon_tensor_describe(x.get(), &info, nullptr), TENON_OK);                                 \
    EXPECT_EQ(info.dtype, id) << #name;                                                                  \
    EXPECT_EQ(info.bytes, static_cast<int64_t>(bytes.size())) << #name;                                  \
    EXPECT_EQ(tenon_tensor_read(x.get(), back.data(), back.size(), nullptr), TENON_OK) << #name;         \
    EXPECT_EQ(back, bytes) << #name;                                                                     \
  }
#include "ep_api/dtypes.def"
#undef EP_DTYPE
}

TEST(CTensors, DescribesWritesAndShares) {
  TensorHandle x = floats({1, 2, 3, 4, 5, 6}, {2, 3});
  tenon_tensor_info info = TENON_INIT(tenon_tensor_info);
  ASSERT_EQ(tenon_tensor_describe(x.get(), &info, nullptr), TENON_OK);
  EXPECT_EQ(info.rank, 2);
  EXPECT_EQ(info.dims[1], 3);
  EXPECT_EQ(info.strides[0], 3);
  EXPECT_EQ(info.elements, 6);
  EXPECT_STREQ(info.device, "cpu:0");
  const TensorHandle same(tenon_tensor_share(x.get()));
  const float written[] = {6, 5, 4, 3, 2, 1};
  EXPECT_EQ(tenon_tensor_write(x.get(), written, sizeof written, nullptr), TENON_OK);
  x.reset();
  EXPECT_EQ(read_floats(same.get()), std::vector<float>({6, 5, 4, 3, 2, 1}));
  void* address = nullptr;
  EXPECT_EQ(tenon_tensor_data(same.get(), &address, nullptr), TENON_OK);
  ASSERT_NE(address, nullptr);
  EXPECT_EQ(static_cast<float*>(address)[0], 6.0f);
}

TEST(CTensors, BorrowedMemoryIsUsedInPlaceAndGivenBackOnce) {
  float memory[] = {1, 9, 2, 9, 3, 9};
  std::atomic<int> given_back{0};
  const int64_t dims[] = {3}, strides[] = {2}, negative[] = {-1};
  const auto deleter = [](void* context) { static_cast<std::atomic<int>*>(context)->fetch_add(1); };
  tenon_tensor* refused = nullptr;
  EXPECT_EQ(tenon_tensor_borrow(memory, TENON_F32, 1, negative, nullptr, deleter, &given_back, &refused, nullptr),
            TENON_INVALID_ARGUMENT);
  EXPECT_EQ(given_back, 0) << "the deleter ran although the call failed";
  TensorHandle x = made<TensorHandle>([&](auto out, auto error) {
    return tenon_tensor_borrow(memory, TENON_F32, 1, dims, strides, deleter, &given_back, out, error);
  });
  EXPECT_EQ(read_floats(x.get()), std::vector<float>({1, 2, 3}));
  memory[2] = 7;
  const TensorHandle doubled = call("add", {tensor_argument(x.get()), tensor_argument(x.get())});
  EXPECT_EQ(read_floats(doubled.get()), std::vector<float>({2, 14, 6}));
  x.reset();
  EXPECT_EQ(given_back, 1);
}

TEST(CTensors, MovesAndCasts) {
  const TensorHandle x = floats({1.5f, -2.5f}, {2});
  const TensorHandle whole =
      made<TensorHandle>([&](auto out, auto error) { return tenon_tensor_to_dtype(x.get(), TENON_I32, out, error); });
  int32_t numbers[2] = {};
  ASSERT_EQ(tenon_tensor_read(whole.get(), numbers, sizeof numbers, nullptr), TENON_OK);
  EXPECT_EQ(numbers[1], -2);
  const TensorHandle there =
      made<TensorHandle>([&](auto out, auto error) { return tenon_tensor_to_device(x.get(), "cpu", out, error); });
  EXPECT_EQ(read_floats(there.get()), std::vector<float>({1.5f, -2.5f}));
  DLManagedTensor* managed = nullptr;
  ASSERT_EQ(tenon_tensor_to_dlpack(x.get(), &managed, nullptr), TENON_OK);
  const TensorHandle back =
      made<TensorHandle>([&](auto out, auto error) { return tenon_tensor_from_dlpack(managed, out, error); });
  EXPECT_EQ(read_floats(back.get()), std::vector<float>({1.5f, -2.5f}));
}

TEST(COps, EveryKindOfArgumentArrives) {
  const TensorHandle x = floats({3, 1, 2, 6, 5, 4}, {2, 3}), w = floats({1, 2, 3}, {3});
  const Tensor same = Tensor::from<float>(std::vector<float>{3, 1, 2, 6, 5, 4}, {2, 3});

  tenon_argument axes{};
  const int64_t both[] = {0, 1};
  axes.name = "dim";
  axes.kind = TENON_ARGUMENT_INTEGERS;
  axes.count = 2;
  axes.value.integers = both;
  EXPECT_EQ(read_floats(call("sum", {tensor_argument(x.get()), axes}).get()), std::vector<float>({21}));
  const TensorHandle kept = call("sum", {tensor_argument(x.get()), integer_argument(1, "dim"),
                                         integer_argument(1, "keepdim", TENON_ARGUMENT_BOOL)});
  EXPECT_EQ(read_floats(kept.get()), sum(same, {1}, true).to_host<float>());

  tenon_argument number{};
  number.kind = TENON_ARGUMENT_NUMBER;
  number.value.number = 2.5;
  EXPECT_EQ(read_floats(call("mul", {tensor_argument(w.get()), number}).get()), std::vector<float>({2.5f, 5, 7.5f}));

  const tenon_tensor* pair[] = {x.get(), x.get()};
  tenon_argument tensors{};
  tensors.kind = TENON_ARGUMENT_TENSORS;
  tensors.count = 2;
  tensors.value.tensors = pair;
  EXPECT_EQ(read_floats(call("cat", {tensors, integer_argument(1, "dim")}).get()),
            cat({same, same}, 1).to_host<float>());

  tenon_argument text{};
  text.name = "approximate";
  text.kind = TENON_ARGUMENT_TEXT;
  text.value.text = "tanh";
  EXPECT_EQ(read_floats(call("gelu", {tensor_argument(x.get()), text}).get()), gelu(same, "tanh").to_host<float>());

  tenon_argument device{};
  device.name = "device";
  device.kind = TENON_ARGUMENT_DEVICE;
  device.value.text = "cpu:0";
  tenon_argument size = axes;
  size.name = nullptr;
  const int64_t dims[] = {4};
  size.count = 1;
  size.value.integers = dims;
  const TensorHandle ones = call("ones", {size, integer_argument(TENON_F32, "dtype", TENON_ARGUMENT_DTYPE), device});
  EXPECT_EQ(read_floats(ones.get()), std::vector<float>(4, 1.0f));
}

TEST(COps, SeveralResultsNeedRoom) {
  const TensorHandle x = floats({3, 1, 2}, {3});
  const tenon_argument arguments[] = {tensor_argument(x.get())};
  tenon_tensor* results[3] = {};
  size_t count = 0;
  Caught error;
  EXPECT_EQ(tenon_op_call(op("sort"), arguments, 1, results, 1, &count, error.out()), TENON_INVALID_ARGUMENT);
  EXPECT_NE(error.text().find("2 results, and room for 1"), std::string::npos) << error.text();
  ASSERT_EQ(tenon_op_call(op("sort"), arguments, 1, results, 3, &count, error.out()), TENON_OK) << error.text();
  ASSERT_EQ(count, 2u);
  const TensorHandle values(results[0]), indices(results[1]);
  EXPECT_EQ(read_floats(values.get()), std::vector<float>({1, 2, 3}));
}

// y = exp(x) * scale, where `scale` is a tensor of the context.
struct Scaled {
  TensorHandle scale;
  int calls = 0;
  bool fails = false;
  bool released = false;
};

tenon_status scaled(void* context, const tenon_tensor* const* inputs, size_t, tenon_tensor** outputs, size_t,
                    tenon_error** error) {
  auto& scaled = *static_cast<Scaled*>(context);
  ++scaled.calls;
  if (scaled.fails) {
    *error = tenon_error_create(TENON_UNSUPPORTED, "The scale is not ready.");
    return TENON_UNSUPPORTED;
  }
  size_t count = 0;
  tenon_tensor* grown = nullptr;
  tenon_argument arguments[] = {tensor_argument(inputs[0]), tensor_argument(scaled.scale.get())};
  tenon_status status = tenon_op_call(op("exp"), arguments, 1, &grown, 1, &count, error);
  if (status != TENON_OK) return status;
  const TensorHandle held(grown);
  arguments[0] = tensor_argument(grown);
  return tenon_op_call(op("mul"), arguments, 2, outputs, 1, &count, error);
}

TEST(CPrograms, AreRecordedOnceAndServeOtherSizes) {
  Scaled context{floats({2}, {1})};
  tenon_program_options options = TENON_INIT(tenon_program_options);
  options.name = "scaled";
  options.release = [](void* given) { static_cast<Scaled*>(given)->released = true; };
  ProgramHandle program = made<ProgramHandle>(
      [&](auto out, auto error) { return tenon_program_create(scaled, &context, 1, &options, out, error); });
  for (size_t size = 1; size < 20; ++size) {
    const TensorHandle x = floats(std::vector<float>(size, 0.5f), {static_cast<int64_t>(size)});
    const tenon_tensor* inputs[] = {x.get()};
    const TensorHandle y = made<TensorHandle>(
        [&](auto out, auto error) { return tenon_program_run(program.get(), inputs, 1, out, 1, nullptr, error); });
    const std::vector<float> values = read_floats(y.get());
    ASSERT_EQ(values.size(), size);
    for (const float value : values) ASSERT_NEAR(value, 2 * std::exp(0.5), 1e-5);
  }
  EXPECT_LE(context.calls, 4) << "the function ran at each call";
  EXPECT_FALSE(context.released);
  program.reset();
  EXPECT_TRUE(context.released);
}

TEST(CPrograms, AFailingFunctionIsTheErrorOfTheRun) {
  Scaled context{floats({2}, {1})};
  context.fails = true;
  const ProgramHandle program = made<ProgramHandle>(
      [&](auto out, auto error) { return tenon_program_create(scaled, &context, 1, nullptr, out, error); });
  const TensorHandle x = floats({1, 2}, {2});
  const tenon_tensor* inputs[] = {x.get()};
  tenon_tensor* result = nullptr;
  Caught error;
  EXPECT_EQ(tenon_program_run(program.get(), inputs, 1, &result, 1, nullptr, error.out()), TENON_UNSUPPORTED);
  EXPECT_NE(error.text().find("The scale is not ready."), std::string::npos) << error.text();
  EXPECT_EQ(tenon_program_run(program.get(), inputs, 1, &result, 2, nullptr, error.out()), TENON_INVALID_ARGUMENT);
  EXPECT_NE(error.text().find("has 1 outputs, but `output_count` is 2"), std::string::npos) << error.text();
  context.fails = false;
  ASSERT_EQ(tenon_program_run(program.get(), inputs, 1, &result, 1, nullptr, error.out()), TENON_OK) << error.text();
  tenon_tensor_free(result);
}

TEST(CDevices, AreListedWithTheirReasons) {
  const DevicesHandle list =
      made<DevicesHandle>([](auto out, auto error) { return tenon_device_list_create(out, error); });
  bool cpu = false;
  for (size_t i = 0; i < tenon_device_list_count(list.get()); ++i) {
    tenon_device_info info = TENON_INIT(tenon_device_info);
    ASSERT_EQ(tenon_device_list_get(list.get(), i, &info, nullptr), TENON_OK);
    EXPECT_EQ(info.usable == 0, std::strlen(info.reason) > 0) << info.device;
    if (std::strcmp(info.device, "cpu:0") != 0) continue;
    cpu = true;
    EXPECT_STREQ(info.provider, "cpu");
    EXPECT_STREQ(info.device_class, "cpu");
    EXPECT_EQ(info.is_default, 1);
  }
  EXPECT_TRUE(cpu);
  tenon_device_info info = TENON_INIT(tenon_device_info);
  EXPECT_EQ(tenon_device_list_get(list.get(), 1000, &info, nullptr), TENON_INVALID_ARGUMENT);
  char* report = nullptr;
  ASSERT_EQ(tenon_doctor(&report, nullptr), TENON_OK);
  EXPECT_NE(std::strstr(report, "\"candidates\""), nullptr);
  tenon_free(report);
  tenon_memory_info memory = TENON_INIT(tenon_memory_info);
  const TensorHandle x = floats(std::vector<float>(1000, 1.0f), {1000});
  ASSERT_EQ(tenon_device_memory("cpu:0", &memory, nullptr), TENON_OK);
  EXPECT_GE(memory.live, 4000u);
  EXPECT_GE(memory.reserved, memory.live);
  EXPECT_EQ(tenon_device_synchronize(nullptr, nullptr), TENON_OK);
  EXPECT_EQ(tenon_device_trim("cpu:0", nullptr), TENON_OK);
}

TEST(CDevices, SettingsAreCheckedAndTheLogGoesToTheSink) {
  Caught error;
  EXPECT_NE(tenon_set_setting("devise", "cpu", error.out()), TENON_OK);
  EXPECT_NE(error.text().find("devise"), std::string::npos) << error.text();
  EXPECT_STRNE(tenon_version(), "");
  EXPECT_EQ(tenon_c_version(), 65536u * TENON_C_MAJOR + TENON_C_MINOR);
  EXPECT_EQ(tenon_set_num_threads(0, error.out()), TENON_INVALID_ARGUMENT) << error.text();
  struct Lines {
    std::mutex mutex;
    std::vector<std::string> texts;
  } lines;
  tenon_set_log_sink(
      [](void* context, int32_t, const char* topic, const char* message) {
        auto& all = *static_cast<Lines*>(context);
        const std::lock_guard lock(all.mutex);
        all.texts.push_back(std::string(topic) + ": " + message);
      },
      &lines);
  loader::log(loader::LogTopic::load, loader::LogLevel::warning, "a line for the sink");
  tenon_set_log_sink(nullptr, nullptr);
  const std::lock_guard lock(lines.mutex);
  ASSERT_EQ(lines.texts.size(), 1u);
  EXPECT_EQ(lines.texts[0], "load: a line for the sink");
}

}  // namespace
}  // namespace tenon::c
