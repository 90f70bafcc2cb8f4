// .npy and safetensors: files that Tenon writes and files that NumPy writes can be read; broken files are refused.
#include "core/tensor/files.h"

#include <gtest/gtest.h>

#include <random>

#include "core/ops/ops.h"
#include "tests/unit/scratch_folder.h"
#include "tests/unit/tensor/expect_error.h"

namespace tenon {
namespace {

void expect_error(Code code, const std::string& part, const std::function<void()>& call) {
  testing::expect_error(call, code, {part});
}

constexpr DType kBoth[] = {DType::boolean, DType::i8,  DType::u8,  DType::i16, DType::u16, DType::i32,
                           DType::u32,     DType::i64, DType::u64, DType::f16, DType::f32, DType::f64};

std::string bytes_of(const Tensor& x) {
  std::string bytes(static_cast<size_t>(x.bytes()), '\0');
  x.copy_to_host(bytes.data());
  return bytes;
}

Tensor some(const Dims& dims, DType dtype) {
  std::vector<float> values(static_cast<size_t>(element_count(dims)));
  for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 90) + 1;
  return cast(Tensor::from(values, dims), dtype);
}

void expect_same(const Tensor& a, const Tensor& b) {
  EXPECT_EQ(a.dtype(), b.dtype());
  EXPECT_EQ(a.dims(), b.dims());
  EXPECT_EQ(bytes_of(a), bytes_of(b));
}

std::string npy(std::string_view header, std::string_view data) {
  std::string bytes("\x93NUMPY\x01\x00", 8);
  bytes += static_cast<char>(header.size());
  bytes += '\0';
  return bytes.append(header).append(data);
}

std::string safe(std::string_view header, std::string_view data) {
  std::string bytes(8, '\0');
  bytes[0] = static_cast<char>(header.size());
  bytes[1] = static_cast<char>(header.size() >> 8);
  return bytes.append(header).append(data);
}

TEST(Npy, IsReadAsItWasWritten) {
  for (const DType dtype : kBoth) {
    for (const Dims& dims : {Dims{}, Dims{1}, Dims{7}, Dims{0, 3}, Dims{2, 3, 5}}) {
      const Tensor x = some(dims, dtype);
      const std::string bytes = npy_to_bytes(x);
      EXPECT_EQ((bytes.size() - static_cast<size_t>(x.bytes())) % 64, 0u);
      expect_same(npy_from_bytes(bytes), x);
    }
  }
  expect_same(npy_from_bytes(npy_to_bytes(transpose(some({3, 4}, DType::f32), 0, 1))),
              contiguous(transpose(some({3, 4}, DType::f32), 0, 1)));
  const ScratchFolder folder;
  save_npy(folder.path() + "/x.npy", some({4, 2}, DType::i16));
  expect_same(load_npy(folder.path() + "/x.npy"), some({4, 2}, DType::i16));
  expect_error(Code::not_found, "no file", [&] { (void)load_npy(folder.path() + "/y.npy"); });
  expect_error(Code::unsupported, "no dtype for bf16", [] { (void)npy_to_bytes(some({2}, DType::bf16)); });
}

TEST(Npy, IsReadInOtherOrders) {
  const std::string columns("\x01\x02\x03\x04\x05\x06");
  const Tensor x = npy_from_bytes(npy("{'descr': '|i1', 'fortran_order': True, 'shape': (2, 3)}", columns));
  EXPECT_EQ(x.to_host<int8_t>(), (std::vector<int8_t>{1, 3, 5, 2, 4, 6}));
  const Tensor y = npy_from_bytes(npy("{'descr': '>u2', 'fortran_order': False, 'shape': (3,), }", columns));
  EXPECT_EQ(y.to_host<uint16_t>(), (std::vector<uint16_t>{0x102, 0x304, 0x506}));
}

TEST(Npy, RefusesBrokenFiles) {
  const auto refused = [](std::string_view text, const std::string& bytes) {
    expect_error(Code::invalid_argument, std::string(text), [&] { (void)npy_from_bytes(bytes); });
  };
  refused("does not begin", "NUMPY");
  std::string longer = npy("{}", "");
  longer[8] = '\x7f';
  refused("ends beyond the file", longer);
  refused("lacks descr or shape", npy("{}", "12"));
  refused("Tenon has no dtype for elements of",
          npy("{'descr': '<c8', 'fortran_order': False, 'shape': (1,)}", "12345678"));
  refused("has the unknown key 'x'", npy("{'x': 1}", ""));
  refused("but its shape needs another number", npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", "1234"));
  refused("but its shape needs another number",
          npy("{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 4)}", ""));
  refused("rank 9", npy("{'descr': '|u1', 'fortran_order': False, 'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1)}", "1"));
}

TEST(Safetensors, AreReadAsTheyWereWritten) {
  NamedTensors tensors;
  for (const DType dtype : kBoth) tensors.emplace("t/" + std::string(dtype_name(dtype)), some({3, 5}, dtype));
  tensors.emplace("brain", some({4}, DType::bf16));
  tensors.emplace("f8", some({4}, DType::f8e4m3fn));
  tensors.emplace("none", some({0, 2}, DType::f32));
  tensors.emplace("\"quoted\" \\ \n", some({}, DType::f64));
  const Metadata texts{{"format", "pt"}, {"a \"b\"", "\t"}};
  Metadata found;
  const NamedTensors read = safetensors_from_bytes(safetensors_to_bytes(tensors, texts), {}, &found);
  EXPECT_EQ(found, texts);
  ASSERT_EQ(read.size(), tensors.size());
  for (const auto& [name, tensor] : tensors) expect_same(read.at(name), tensor);
  const ScratchFolder folder;
  save_safetensors(folder.path() + "/x", tensors);
  EXPECT_EQ(load_safetensors(folder.path() + "/x").size(), tensors.size());
}

TEST(Safetensors, RefuseBrokenFiles) {
  const auto refused = [](std::string_view text, const std::string& bytes) {
    expect_error(Code::invalid_argument, std::string(text), [&] { (void)safetensors_from_bytes(bytes); });
  };
  const std::string_view one = R"("a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]})";
  const auto with = [&](std::string_view more) { return "{" + std::string(one) + std::string(more) + "}"; };
  refused("shorter than", "1234");
  refused("ends beyond the file", safe(with(""), "12").substr(0, 20));
  refused("which does not fit its shape", safe(with(""), "1"));
  refused("the tensors end at byte 2 of 3", safe(with(""), "123"));
  refused("begins at byte 1, but the tensors before it end at 2",
          safe(with(R"(,"b":{"dtype":"U8","shape":[2],"data_offsets":[1,3]})"), "123"));
  refused("two tensors 'a'", safe(with(R"(,"a":{"dtype":"U8","shape":[1],"data_offsets":[2,3]})"), "123"));
  refused("elements of the unknown type C64",
          safe(R"({"a":{"dtype":"C64","shape":[],"data_offsets":[0,8]}})", "12345678"));
  refused("lacks dtype", safe(R"({"a":{"shape":[],"data_offsets":[0,8]}})", "12345678"));
  refused("there is text after the header", safe(with("") + "{}", "12"));
}

// Truncation at every byte and many changed bytes give an error or a tensor, never a crash.
TEST(Files, SurviveDamage) {
  const std::string good[] = {
      npy_to_bytes(some({3, 4}, DType::f32)),
      safetensors_to_bytes({{"a", some({2, 3}, DType::f16)}, {"b", some({4}, DType::i64)}}, {{"k", "v"}})};
  std::mt19937 random(5);
  int refused = 0, tries = 0;
  const auto attempt = [&](const std::string& bytes, bool is_npy) {
    ++tries;
    try {
      is_npy ? (void)npy_from_bytes(bytes) : (void)safetensors_from_bytes(bytes);
    } catch (const Error&) {
      ++refused;
    }
  };
  for (int which = 0; which < 2; ++which) {
    for (size_t cut = 0; cut < good[which].size(); ++cut) attempt(good[which].substr(0, cut), which == 0);
    for (int i = 0; i < 4000; ++i) {
      std::string bytes = good[which];
      for (int k = 0; k < 1 + i % 3; ++k)
        bytes[random() % std::min<size_t>(bytes.size(), 200)] = static_cast<char>(random());
      attempt(bytes, which == 0);
    }
  }
  EXPECT_GT(refused, tries / 2);
}

}  // namespace
}  // namespace tenon
