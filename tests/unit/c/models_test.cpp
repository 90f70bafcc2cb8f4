// Models through the C API, against the C++ API: names, bound outputs, reports, cancellation, asynchronous runs,
// values.
#include <condition_variable>
#include <cstring>
#include <fstream>
#include <mutex>
#include <thread>

#include "sdk/onnx/onnx.h"
#include "tests/unit/c/handles.h"
#include "tests/unit/onnx/model_builder.h"

namespace tenon::c {
namespace {

using onnx::kFloat;
using onnx::kString;
using onnx::ModelBuilder;

// y = relu(a - b); z = a + b
std::string two_outputs() {
  ModelBuilder builder;
  for (const char* name : {"a", "b"}) builder.input(name, kFloat, {"batch", "3"});
  for (const char* name : {"y", "z"}) builder.output(name, kFloat, {"batch", "3"});
  builder.node("Sub", {"a", "b"}, {"d"}, "minus");
  builder.node("Relu", {"d"}, {"y"}, "positive");
  builder.node("Add", {"a", "b"}, {"z"}, "plus");
  return builder.bytes();
}

ModelHandle load(const std::string& bytes, const tenon_model_options* options = nullptr) {
  return made<ModelHandle>(
      [&](auto out, auto error) { return tenon_model_load_bytes(bytes.data(), bytes.size(), options, out, error); });
}

struct Pair {
  TensorHandle a = floats({1, 5, 3, 0, 2, 4}, {2, 3}), b = floats({4, 2, 3, 1, 1, 1}, {2, 3});
  const tenon_tensor* in_order[2] = {a.get(), b.get()};
  std::vector<float> y = {0, 3, 0, 0, 1, 3}, z = {5, 7, 6, 1, 3, 5};
};

TEST(CModels, DescribeTheirInputsAndOutputs) {
  const ModelHandle model = load(two_outputs());
  ASSERT_EQ(tenon_model_count(model.get(), TENON_INPUTS), 2u);
  ASSERT_EQ(tenon_model_count(model.get(), TENON_OUTPUTS), 2u);
  EXPECT_EQ(tenon_model_count(model.get(), TENON_DEFAULTS), 0u);
  EXPECT_EQ(tenon_model_count(model.get(), 17), 0u);
  tenon_value_info info = TENON_INIT(tenon_value_info);
  ASSERT_EQ(tenon_model_describe(model.get(), TENON_INPUTS, 1, &info, nullptr), TENON_OK);
  EXPECT_STREQ(info.name, "b");
  EXPECT_EQ(info.kind, TENON_VALUE_TENSOR);
  EXPECT_EQ(info.dtype, TENON_F32);
  ASSERT_EQ(info.rank, 2);
  EXPECT_EQ(info.dims[0].size, -1);
  EXPECT_STREQ(info.dims[0].name, "batch");
  EXPECT_EQ(info.dims[1].size, 3);
  EXPECT_STREQ(info.text, "f32[batch, 3]");
  Caught error;
  EXPECT_EQ(tenon_model_describe(model.get(), TENON_INPUTS, 2, &info, error.out()), TENON_INVALID_ARGUMENT);
  EXPECT_NE(error.text().find("The index is 2"), std::string::npos) << error.text();
  EXPECT_EQ(tenon_model_metadata(model.get(), "author"), nullptr);
}

TEST(CModels, RunByNameAndInOrder) {
  const ModelHandle model = load(two_outputs());
  const Pair pair;
  const char* swapped_names[] = {"b", "a"};
  const tenon_tensor* swapped[] = {pair.b.get(), pair.a.get()};
  for (const bool by_name : {false, true}) {
    tenon_tensor* outputs[2] = {};
    Caught error;
    ASSERT_EQ(tenon_model_run(model.get(), by_name ? swapped_names : nullptr, by_name ? swapped : pair.in_order, 2,
                              outputs, 2, nullptr, error.out()),
              TENON_OK)
        << error.text();
    const TensorHandle y(outputs[0]), z(outputs[1]);
    EXPECT_EQ(read_floats(y.get()), pair.y);
    EXPECT_EQ(read_floats(z.get()), pair.z);
  }
}

TEST(CModels, WrongRunsAreNamed) {
  const ModelHandle model = load(two_outputs());
  const Pair pair;
  const char *twice[] = {"a", "a"}, *unknown[] = {"a", "c"};
  tenon_tensor* outputs[2] = {};
  Caught error;
  EXPECT_EQ(tenon_model_run(model.get(), nullptr, pair.in_order, 1, outputs, 2, nullptr, error.out()),
            TENON_INVALID_ARGUMENT);
  EXPECT_NE(error.text().find("has 2 inputs, but `input_count` is 1"), std::string::npos) << error.text();
  EXPECT_EQ(tenon_model_run(model.get(), nullptr, pair.in_order, 2, outputs, 1, nullptr, error.out()),
            TENON_INVALID_ARGUMENT);
  EXPECT_NE(error.text().find("has 2 outputs, but `output_count` is 1"), std::string::npos) << error.text();
  EXPECT_EQ(tenon_model_run(model.get(), twice, pair.in_order, 2, outputs, 2, nullptr, error.out()),
            TENON_INVALID_ARGUMENT);
  EXPECT_NE(error.text().find("'a' is given twice"), std::string::npos) << error.text();
  EXPECT_EQ(tenon_model_run(model.get(), unknown, pair.in_order, 2, outputs, 2, nullptr, error.out()),
            TENON_INVALID_ARGUMENT);
  EXPECT_NE(error.text().find("c"), std::string::npos) << error.text();
  EXPECT_EQ(outputs[0], nullptr);
  tenon_model* none = nullptr;
  EXPECT_EQ(tenon_model_load_bytes("nonsense", 8, nullptr, &none, error.out()), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(none, nullptr);
  ASSERT_EQ(tenon_model_run(model.get(), nullptr, pair.in_order, 2, outputs, 2, nullptr, error.out()), TENON_OK);
  for (tenon_tensor* each : outputs) tenon_tensor_free(each);
}

TEST(CModels, BoundOutputsAreWrittenInPlace) {
  const ModelHandle model = load(two_outputs());
  const Pair pair;
  const TensorHandle place = floats(std::vector<float>(6, -1.0f), {2, 3});
  const tenon_tensor* bound[] = {nullptr, place.get()};
  tenon_run_options options = TENON_INIT(tenon_run_options);
  options.bound = bound;
  tenon_tensor* outputs[2] = {};
  Caught error;
  ASSERT_EQ(tenon_model_run(model.get(), nullptr, pair.in_order, 2, outputs, 2, &options, error.out()), TENON_OK)
      << error.text();
  const TensorHandle y(outputs[0]), z(outputs[1]);
  EXPECT_EQ(read_floats(place.get()), pair.z);
  EXPECT_EQ(read_floats(y.get()), pair.y);
}

TEST(CModels, AReportNamesTheNodes) {
  tenon_model_options load_options = TENON_INIT(tenon_model_options);
  load_options.fuse = TENON_OFF;
  load_options.device = "cpu:0";
  const ModelHandle model = load(two_outputs(), &load_options);
  const Pair pair;
  char* report = nullptr;
  tenon_run_options options = TENON_INIT(tenon_run_options);
  options.report = &report;
  tenon_tensor* outputs[2] = {};
  Caught error;
  ASSERT_EQ(tenon_model_run(model.get(), nullptr, pair.in_order, 2, outputs, 2, &options, error.out()), TENON_OK)
      << error.text();
  for (tenon_tensor* each : outputs) tenon_tensor_free(each);
  ASSERT_NE(report, nullptr);
  for (const char* word : {"plus", "\"implementation\"", "cpu:0"})
    EXPECT_NE(std::strstr(report, word), nullptr) << report;
  tenon_free(report);
}

TEST(CModels, WrongOptionsAreNamed) {
  const std::string bytes = two_outputs();
  Caught error;
  tenon_model* none = nullptr;
  tenon_model_options options = TENON_INIT(tenon_model_options);
  options.fuse = 3;
  EXPECT_EQ(tenon_model_load_bytes(bytes.data(), bytes.size(), &options, &none, error.out()), TENON_INVALID_ARGUMENT);
  EXPECT_NE(error.text().find("`fuse` is 3"), std::string::npos) << error.text();
  options.fuse = TENON_DEFAULT;
  options.precision = 9;
  EXPECT_EQ(tenon_model_load_bytes(bytes.data(), bytes.size(), &options, &none, error.out()), TENON_INVALID_ARGUMENT);
  EXPECT_NE(error.text().find("`precision` is 9"), std::string::npos) << error.text();
}

TEST(CModels, ACancelledRunSaysSo) {
  const ModelHandle model = load(two_outputs());
  const Pair pair;
  const StopHandle stop = made<StopHandle>([](auto out, auto error) { return tenon_cancellation_create(out, error); });
  tenon_run_options options = TENON_INIT(tenon_run_options);
  options.cancellation = stop.get();
  tenon_tensor* outputs[2] = {};
  Caught error;
  tenon_cancellation_cancel(stop.get());
  const tenon_status status =
      tenon_model_run(model.get(), nullptr, pair.in_order, 2, outputs, 2, &options, error.out());
  EXPECT_EQ(status, TENON_CANCELLED) << error.text();
  options.cancellation = nullptr;
  ASSERT_EQ(tenon_model_run(model.get(), nullptr, pair.in_order, 2, outputs, 2, &options, error.out()), TENON_OK);
  for (tenon_tensor* each : outputs) tenon_tensor_free(each);
}

TEST(CModels, ThirtyAsynchronousRunsEachEndOnce) {
  struct Ends {
    std::mutex mutex;
    std::condition_variable changed;
    int right = 0, refused = 0;
    std::vector<float> y;
  } ends;
  const Pair pair;
  ends.y = pair.y;
  const auto done = [](void* context, tenon_status status, tenon_tensor** outputs, size_t count, tenon_error* error) {
    auto& all = *static_cast<Ends*>(context);
    bool right = status == TENON_OK && count == 2;
    for (size_t i = 0; i < count; ++i) {
      const TensorHandle each(outputs[i]);
      if (i == 0) right = right && read_floats(each.get()) == all.y;
    }
    const bool refused = status == TENON_INVALID_ARGUMENT && error != nullptr;
    tenon_error_free(error);
    const std::lock_guard lock(all.mutex);
    all.right += right;
    all.refused += refused;
    all.changed.notify_all();
  };
  {
    const ModelHandle model = load(two_outputs());
    const TensorHandle narrow = floats({1, 2}, {1, 2});
    const tenon_tensor* wrong[] = {narrow.get(), narrow.get()};
    for (int i = 0; i < 30; ++i) {
      Caught error;
      const tenon_tensor* const* inputs = i % 10 == 9 ? wrong : pair.in_order;
      ASSERT_EQ(tenon_model_run_async(model.get(), nullptr, inputs, 2, nullptr, done, &ends, error.out()), TENON_OK)
          << error.text();
    }
  }  // the model and the wrong inputs are freed while runs wait
  std::unique_lock lock(ends.mutex);
  ASSERT_TRUE(ends.changed.wait_for(lock, std::chrono::minutes(2), [&] { return ends.right + ends.refused == 30; }));
  EXPECT_EQ(ends.right, 27);
  EXPECT_EQ(ends.refused, 3);
}

TEST(CValues, StringsSequencesAndMapsComeBack) {
  const char* words[] = {"ein", "zwei\0drei", ""};
  const size_t lengths[] = {3, 9, 0};
  const int64_t dims[] = {3}, keys[] = {7, 8, 9};
  const ValueHandle strings = made<ValueHandle>(
      [&](auto out, auto error) { return tenon_value_from_strings(1, dims, words, lengths, 3, out, error); });
  EXPECT_EQ(tenon_value_kind(strings.get()), TENON_VALUE_STRINGS);
  ASSERT_EQ(tenon_value_count(strings.get()), 3u);
  const char* text = nullptr;
  size_t length = 0;
  ASSERT_EQ(tenon_value_string(strings.get(), 1, &text, &length, nullptr), TENON_OK);
  EXPECT_EQ(std::string(text, length), std::string("zwei\0drei", 9));
  const TensorHandle numbers = made<TensorHandle>([&](auto out, auto error) {
    return tenon_tensor_copy(keys, sizeof keys, TENON_I64, 1, dims, nullptr, out, error);
  });
  const ValueHandle list =
      made<ValueHandle>([&](auto out, auto error) { return tenon_value_from_tensor(numbers.get(), out, error); });
  const ValueHandle map = made<ValueHandle>(
      [&](auto out, auto error) { return tenon_value_from_map(list.get(), strings.get(), out, error); });
  EXPECT_EQ(tenon_value_kind(map.get()), TENON_VALUE_MAP);
  const tenon_value* elements[] = {map.get(), strings.get()};
  const ValueHandle sequence =
      made<ValueHandle>([&](auto out, auto error) { return tenon_value_from_sequence(elements, 2, out, error); });
  ASSERT_EQ(tenon_value_count(sequence.get()), 2u);
  const ValueHandle first =
      made<ValueHandle>([&](auto out, auto error) { return tenon_value_element(sequence.get(), 0, out, error); });
  const ValueHandle values =
      made<ValueHandle>([&](auto out, auto error) { return tenon_value_values(first.get(), out, error); });
  EXPECT_EQ(tenon_value_count(values.get()), 3u);
  const ValueHandle its_keys =
      made<ValueHandle>([&](auto out, auto error) { return tenon_value_keys(first.get(), out, error); });
  const TensorHandle back =
      made<TensorHandle>([&](auto out, auto error) { return tenon_value_tensor(its_keys.get(), out, error); });
  int64_t read[3] = {};
  ASSERT_EQ(tenon_tensor_read(back.get(), read, sizeof read, nullptr), TENON_OK);
  EXPECT_EQ(read[2], 9);
  const ValueHandle nothing = made<ValueHandle>([](auto out, auto error) { return tenon_value_nothing(out, error); });
  EXPECT_EQ(tenon_value_kind(nothing.get()), TENON_VALUE_OPTIONAL);
  Caught error;
  tenon_value* none = nullptr;
  EXPECT_EQ(tenon_value_element(sequence.get(), 2, &none, error.out()), TENON_INVALID_ARGUMENT);
  EXPECT_EQ(tenon_value_keys(strings.get(), &none, error.out()), TENON_INVALID_ARGUMENT) << error.text();
  EXPECT_EQ(tenon_value_string(map.get(), 0, &text, &length, error.out()), TENON_INVALID_ARGUMENT) << error.text();
}

TEST(CValues, AModelOfStringsRuns) {
  ModelBuilder builder(20);
  builder.input("words", kString, {"n"});
  builder.input("ends", kString, {"n"});
  builder.output("joined", kString, {"n"});
  builder.node("StringConcat", {"words", "ends"}, {"joined"});
  const ModelHandle model = load(builder.bytes());
  const char *words[] = {"a", "b"}, *ends[] = {"x", "y"};
  const int64_t dims[] = {2};
  const auto strings = [&](const char* const* texts) {
    return made<ValueHandle>(
        [&](auto out, auto error) { return tenon_value_from_strings(1, dims, texts, nullptr, 2, out, error); });
  };
  const ValueHandle first = strings(words), second = strings(ends);
  const tenon_value* inputs[] = {first.get(), second.get()};
  const ValueHandle joined = made<ValueHandle>([&](auto out, auto error) {
    return tenon_model_run_values(model.get(), nullptr, inputs, 2, out, 1, nullptr, error);
  });
  const char* text = nullptr;
  ASSERT_EQ(tenon_value_string(joined.get(), 1, &text, nullptr, nullptr), TENON_OK);
  EXPECT_STREQ(text, "by");
}

TEST(CModels, ACheckListsWhatCannotRun) {
  ModelBuilder builder;
  builder.input("a", kFloat, {"2"});
  builder.output("b", kFloat, {"2"});
  builder.node("Relu", {"a"}, {"b"});
  const std::string path = testing::TempDir() + "/checked.onnx";
  std::ofstream(path, std::ios::binary) << builder.bytes();
  char* json = nullptr;
  Caught error;
  ASSERT_EQ(tenon_model_check(path.c_str(), nullptr, &json, error.out()), TENON_OK) << error.text();
  EXPECT_NE(std::strstr(json, "\"refusals\": []"), nullptr) << json;
  EXPECT_NE(std::strstr(json, "f32[2]"), nullptr) << json;
  tenon_free(json);
  EXPECT_EQ(tenon_model_check("absent.onnx", nullptr, &json, error.out()), TENON_NOT_FOUND);
}

}  // namespace
}  // namespace tenon::c
