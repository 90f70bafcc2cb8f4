// Wrong calls of the C API: each is an error in words, leaves the results untouched, and the next call works.
#include <cstring>
#include <thread>

#include "primitives/text/format.h"
#include "tests/unit/c/handles.h"

namespace tenon::c {
namespace {

// `call` fails with `code`, a message that contains `words`, and leaves the handle alone.
template <class F>
void expect_failure(tenon_status code, const std::string& words, F call) {
  Caught error;
  EXPECT_EQ(call(error.out()), code) << error.text();
  ASSERT_NE(error.get(), nullptr);
  EXPECT_EQ(tenon_error_code(error.get()), code);
  EXPECT_NE(error.text().find(words), std::string::npos) << error.text();
  EXPECT_EQ(call(nullptr), code) << "without a place for the error";
}

TEST(CErrors, ANullArgumentIsNamed) {
  const TensorHandle x = floats({1, 2}, {2});
  tenon_tensor* out = nullptr;
  expect_failure(TENON_INVALID_ARGUMENT, "tenon_tensor_wait: The argument `tensor` is NULL.",
                 [](auto error) { return tenon_tensor_wait(nullptr, error); });
  expect_failure(TENON_INVALID_ARGUMENT, "`out` is NULL",
                 [](auto error) { return tenon_tensor_empty(TENON_F32, 0, nullptr, nullptr, nullptr, error); });
  expect_failure(TENON_INVALID_ARGUMENT, "`dims` is NULL",
                 [&](auto error) { return tenon_tensor_empty(TENON_F32, 2, nullptr, nullptr, &out, error); });
  expect_failure(TENON_INVALID_ARGUMENT, "`data` is NULL",
                 [&](auto error) { return tenon_tensor_read(x.get(), nullptr, 8, error); });
  expect_failure(TENON_INVALID_ARGUMENT, "`path` is NULL", [](auto error) {
    tenon_model* model = nullptr;
    return tenon_model_load(nullptr, nullptr, &model, error);
  });
  expect_failure(TENON_INVALID_ARGUMENT, "`model` is NULL",
                 [](auto error) { return tenon_model_run(nullptr, nullptr, nullptr, 0, nullptr, 0, nullptr, error); });
  EXPECT_EQ(out, nullptr);
  EXPECT_EQ(tenon_model_count(nullptr, TENON_INPUTS), 0u);
  EXPECT_EQ(tenon_value_kind(nullptr), TENON_VALUE_NONE);
  EXPECT_EQ(tenon_device_list_count(nullptr), 0u);
  EXPECT_EQ(tenon_tensor_share(nullptr), nullptr);
}

TEST(CErrors, FreeingNothingDoesNothing) {
  tenon_tensor_free(nullptr);
  tenon_error_free(nullptr);
  tenon_model_free(nullptr);
  tenon_value_free(nullptr);
  tenon_program_free(nullptr);
  tenon_cancellation_free(nullptr);
  tenon_device_list_free(nullptr);
  tenon_free(nullptr);
  EXPECT_EQ(tenon_error_code(nullptr), TENON_OK);
  EXPECT_STREQ(tenon_error_message(nullptr), "");
}

TEST(CErrors, WrongNumbersAreNamed) {
  tenon_tensor* out = nullptr;
  const int64_t dims[] = {2, 3, 1, 1, 1, 1, 1, 1, 1}, negative[] = {-2};
  expect_failure(TENON_INVALID_ARGUMENT, "no dtype 99",
                 [&](auto error) { return tenon_tensor_empty(99, 1, dims, nullptr, &out, error); });
  expect_failure(TENON_INVALID_ARGUMENT, "The rank is 9",
                 [&](auto error) { return tenon_tensor_empty(TENON_F32, 9, dims, nullptr, &out, error); });
  expect_failure(TENON_INVALID_ARGUMENT, "The rank is -1",
                 [&](auto error) { return tenon_tensor_empty(TENON_F32, -1, dims, nullptr, &out, error); });
  expect_failure(TENON_INVALID_ARGUMENT, "-2",
                 [&](auto error) { return tenon_tensor_empty(TENON_F32, 1, negative, nullptr, &out, error); });
  const float values[6] = {};
  expect_failure(TENON_INVALID_ARGUMENT, "take 24 bytes, but `bytes` is 20",
                 [&](auto error) { return tenon_tensor_copy(values, 20, TENON_F32, 2, dims, nullptr, &out, error); });
  expect_failure(TENON_NOT_FOUND, "toaster",
                 [&](auto error) { return tenon_tensor_empty(TENON_F32, 1, dims, "toaster:0", &out, error); });
  EXPECT_EQ(out, nullptr);
}

TEST(CErrors, AStructOfAnotherSizeIsUnderstoodOrRefused) {
  const TensorHandle x = floats({1, 2, 3}, {3});
  Caught error;
  // An older caller, who knows the first two members.
  struct Older {
    size_t size;
    tenon_dtype dtype;
    int32_t rank;
    char beyond[sizeof(tenon_tensor_info)];
  } older{};
  older.size = offsetof(Older, beyond);
  std::memset(older.beyond, 7, sizeof older.beyond);
  ASSERT_EQ(tenon_tensor_describe(x.get(), reinterpret_cast<tenon_tensor_info*>(&older), error.out()), TENON_OK);
  EXPECT_EQ(older.dtype, TENON_F32);
  EXPECT_EQ(older.rank, 1);
  for (const char byte : older.beyond) ASSERT_EQ(byte, 7) << "a byte behind `size` was written";
  // A newer caller, whose later member is 0, and then is not.
  struct Newer {
    tenon_model_options options;
    int64_t later;
  } newer{};
  newer.options.size = sizeof newer;
  tenon_model* model = nullptr;
  EXPECT_EQ(tenon_model_load("absent.onnx", &newer.options, &model, error.out()), TENON_NOT_FOUND) << error.text();
  newer.later = 1;
  EXPECT_EQ(tenon_model_load("absent.onnx", &newer.options, &model, error.out()), TENON_UNSUPPORTED) << error.text();
  tenon_tensor_info without_size{};
  EXPECT_EQ(tenon_tensor_describe(x.get(), &without_size, error.out()), TENON_INVALID_ARGUMENT);
  EXPECT_NE(std::string(tenon_error_remedy(error.get())).find("TENON_INIT"), std::string::npos);
}

TEST(CErrors, TheErrorOfAnOpNamesTheOpAndItsRemedy) {
  const tenon_op* op = nullptr;
  Caught error;
  EXPECT_EQ(tenon_op_find("relo", &op, error.out()), TENON_NOT_FOUND);
  EXPECT_NE((error.text() + tenon_error_remedy(error.get())).find("relu"), std::string::npos) << error.text();
  ASSERT_EQ(tenon_op_find("matmul", &op, error.out()), TENON_OK);
  const TensorHandle a = floats({1, 2}, {1, 2}), b = floats({1, 2, 3}, {3, 1});
  tenon_argument arguments[2] = {};
  arguments[0].kind = arguments[1].kind = TENON_ARGUMENT_TENSOR;
  arguments[0].value.tensor = a.get();
  arguments[1].value.tensor = b.get();
  tenon_tensor* result = nullptr;
  size_t count = 17;
  EXPECT_EQ(tenon_op_call(op, arguments, 2, &result, 1, &count, error.out()), TENON_INVALID_ARGUMENT);
  EXPECT_NE(error.text().find("matmul"), std::string::npos) << error.text();
  EXPECT_EQ(count, 17u);
  arguments[1].kind = 99;
  EXPECT_EQ(tenon_op_call(op, arguments, 2, &result, 1, &count, error.out()), TENON_INVALID_ARGUMENT);
  EXPECT_NE(error.text().find("no kind 99"), std::string::npos) << error.text();
}

TEST(CErrors, ThreadsHaveTheirOwnErrors) {
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([i] {
      const std::string name = fmt::format("no_op_{}", i);
      for (int round = 0; round < 50; ++round) {
        const tenon_op* op = nullptr;
        Caught error;
        EXPECT_EQ(tenon_op_find(name.c_str(), &op, error.out()), TENON_NOT_FOUND);
        EXPECT_NE(error.text().find(name), std::string::npos) << error.text();
      }
    });
  }
  for (std::thread& each : threads) each.join();
}

}  // namespace
}  // namespace tenon::c
