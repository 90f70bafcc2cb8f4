#include "sdk/cli/npy.h"

#include <gtest/gtest.h>

#include <cstring>

#include "primitives/text/format.h"

namespace tenon::cli {
namespace {

// A .npy file, written from its specification.
std::string npy(const std::string& header, const std::string& data, char major = 1) {
  std::string bytes = std::string("\x93NUMPY") + major + '\0';
  bytes += static_cast<char>(header.size() & 0xff);
  bytes += static_cast<char>(header.size() >> 8);
  if (major > 1) bytes += std::string(2, '\0');
  return bytes + header + data;
}

template <class T>
std::string raw(const std::vector<T>& values) {
  return std::string(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

std::string refusal_of(const std::string& bytes) {
  try {
    npy_decode(bytes, Device::current());
  } catch (const Error& error) {
    return error.what();
  }
  return "(read)";
}

TEST(Npy, ReadsVersionsOneToThree) {
  const std::string header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n";
  const std::vector<float> values = {1, -2, 3, 4, 5, 6};
  for (char major : {1, 2, 3}) {
    const Tensor tensor = npy_decode(npy(header, raw(values), major), Device::current());
    EXPECT_EQ(tensor.dims(), (Dims{2, 3}));
    EXPECT_EQ(tensor.to_host<float>(), values);
  }
}

TEST(Npy, TurnsFortranOrderRound) {
  const std::string header = "{'descr': '<i8', 'fortran_order': True, 'shape': (2, 3), }\n";
  const Tensor tensor = npy_decode(npy(header, raw<int64_t>({1, 4, 2, 5, 3, 6})), Device::current());
  EXPECT_EQ(tensor.to_host<int64_t>(), (std::vector<int64_t>{1, 2, 3, 4, 5, 6}));
}

TEST(Npy, RefusesWhatLies) {
  const std::string data(24, 'x');
  EXPECT_NE(refusal_of("no array").find("does not begin with"), std::string::npos);
  EXPECT_NE(refusal_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 4), }", data))
                .find("shape [2, 4] of f32 does not fit 24 bytes"),
            std::string::npos);
  EXPECT_NE(
      refusal_of(npy("{'descr': '>f4', 'fortran_order': False, 'shape': (6,), }", data)).find("element type '>f4'"),
      std::string::npos);
  EXPECT_NE(
      refusal_of(npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }", data)).find("are records"),
      std::string::npos);
  EXPECT_NE(refusal_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (4611686018427387904, 4), }", data)),
            "(read)");
  EXPECT_NE(refusal_of(npy("{'descr': '<f4', 'fortran_order': False, 'shape': (-1,), }", data)), "(read)");
  EXPECT_NE(refusal_of(npy("{'descr': '<f4', 'shape': (6,), }", data)).find("'fortran_order'"), std::string::npos);
  std::string cut = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), }", data);
  for (size_t size = 0; size < cut.size(); ++size) EXPECT_NE(refusal_of(cut.substr(0, size)), "(read)") << size;
}

TEST(Npy, KnowsEveryTypeByNumPysName) {
  const std::vector<std::pair<DType, std::string>> types = {
      {DType::boolean, "|b1"}, {DType::i8, "|i1"},  {DType::u8, "|u1"},  {DType::i16, "<i2"},
      {DType::u16, "<u2"},     {DType::i32, "<i4"}, {DType::u32, "<u4"}, {DType::i64, "<i8"},
      {DType::u64, "<u8"},     {DType::f16, "<f2"}, {DType::f32, "<f4"}, {DType::f64, "<f8"}};
  for (const auto& [dtype, name] : types) {
    const std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': (1,), }}", name);
    const Tensor read = npy_decode(npy(header, std::string(name.back() - '0', '\1')), Device::current());
    EXPECT_EQ(read.dtype(), dtype) << name;
    EXPECT_NE(npy_encode(read).find(fmt::format("'descr': '{}'", name)), std::string::npos) << name;
  }
}

TEST(Npy, ReadsWhatItWrites) {
  const std::vector<float> floats = {1.5f, -2.0f, 3.25f};
  const std::vector<int64_t> whole = {-5};
  const std::vector<uint8_t> truth = {1, 0, 1, 1};
  const Tensor tensors[] = {Tensor::from<float>(floats, {3, 1}), Tensor::from<float>(floats, {3}),
                            Tensor::copy_from_host(whole.data(), {}, DType::i64),
                            Tensor::copy_from_host(truth.data(), {2, 2}, DType::boolean),
                            Tensor::empty({0, 4}, DType::f64)};
  for (const Tensor& tensor : tensors) {
    const std::string bytes = npy_encode(tensor);
    EXPECT_EQ((bytes.find('\n') + 1) % 64, 0u);
    const Tensor back = npy_decode(bytes, Device::current());
    EXPECT_EQ(back.dims(), tensor.dims());
    EXPECT_EQ(back.dtype(), tensor.dtype());
    std::string a(static_cast<size_t>(tensor.bytes()), 'a'), b(static_cast<size_t>(tensor.bytes()), 'b');
    tensor.copy_to_host(a.data());
    back.copy_to_host(b.data());
    EXPECT_EQ(a, b);
  }
}

}  // namespace
}  // namespace tenon::cli
