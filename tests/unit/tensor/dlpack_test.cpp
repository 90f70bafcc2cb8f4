// DLPack, compared with hand-written structs: the data that another library would read, and the data that it would pass
// in.
#include "core/tensor/dlpack.h"

#include <dlpack/dlpack.h>

#include <cstring>
#include <map>
#include <thread>

#include "core/graph/recorder.h"
#include "core/ops/ops.h"
#include "tests/unit/tensor/in_flight.h"

namespace tenon::testing {
namespace {

struct Name {
  int code;
  int bits;
};

// From the specification of DLPack: kDLInt 0, kDLUInt 1, kDLFloat 2, kDLBfloat 4, kDLBool 6, kDLFloat8_e4m3fn 10,
// kDLFloat8_e5m2 12. Other types have no name.
const std::map<std::string_view, Name> names = {
    {"bool", {6, 8}}, {"i8", {0, 8}},   {"i16", {0, 16}},  {"i32", {0, 32}},      {"i64", {0, 64}},
    {"u8", {1, 8}},   {"u16", {1, 16}}, {"u32", {1, 32}},  {"u64", {1, 64}},      {"f16", {2, 16}},
    {"f32", {2, 32}}, {"f64", {2, 64}}, {"bf16", {4, 16}}, {"f8e4m3fn", {10, 8}}, {"f8e5m2", {12, 8}},
};

constexpr DType all_dtypes[] = {
#define EP_DTYPE(name, id, bits, type_class) static_cast<DType>(id),
#include "ep_api/dtypes.def"
#undef EP_DTYPE
};

// A tensor of another library. It owns its memory, shape and strides, and counts its deletions.
struct Foreign {
  explicit Foreign(std::vector<float> memory, std::vector<int64_t> dims = {}, std::vector<int64_t> steps = {})
      : values(std::move(memory)), shape(std::move(dims)), strides(std::move(steps)) {
    DLTensor& tensor = managed.dl_tensor;
    tensor.data = values.data();
    tensor.device = {kDLCPU, 0};
    tensor.ndim = static_cast<int>(shape.size());
    tensor.dtype = {kDLFloat, 32, 1};
    tensor.shape = shape.data();
    tensor.strides = strides.empty() ? nullptr : strides.data();
    tensor.byte_offset = 0;
    managed.manager_ctx = this;
    managed.deleter = [](DLManagedTensor* self) { ++static_cast<Foreign*>(self->manager_ctx)->deleted; };
  }
  Foreign(const Foreign&) = delete;

  std::vector<float> values;
  std::vector<int64_t> shape, strides;
  DLManagedTensor managed{};
  std::atomic<int> deleted{0};
};

// Counts the calls of an exported tensor's deleter and passes them on.
struct Watched {
  explicit Watched(DLManagedTensor* managed) : inner(managed->deleter), context(managed->manager_ctx) {
    managed->manager_ctx = this;
    managed->deleter = [](DLManagedTensor* self) {
      auto* watched = static_cast<Watched*>(self->manager_ctx);
      ++watched->deleted;
      self->manager_ctx = watched->context;
      watched->inner(self);
    };
  }
  void (*inner)(DLManagedTensor*);
  void* context;
  int deleted = 0;
};

class DLPack : public InFlight {
 protected:
  std::vector<unsigned char> random_bytes(DType dtype, size_t count) {
    std::vector<unsigned char> bytes(count);
    for (unsigned char& byte : bytes) {
      byte = static_cast<unsigned char>(dtype == DType::boolean ? random_() % 2 : random_() % 255 + 1);
    }
    return bytes;
  }
};

TEST_F(DLPack, EveryDTypeMakesTheRoundTripWithoutACopy) {
  for (DType dtype : all_dtypes) {
    SCOPED_TRACE(dtype_name(dtype));
    const auto name = names.find(dtype_name(dtype));
    const std::vector<unsigned char> bytes = random_bytes(dtype, static_cast<size_t>(dtype_bytes(dtype, 24)));
    const Tensor tensor = Tensor::copy_from_host(bytes.data(), {2, 3, 4}, dtype, Device::host());
    if (name == names.end()) {
      expect_error([&] { to_dlpack(tensor); }, Code::unsupported,
                   {"no name for dtype", std::string(dtype_name(dtype))});
      continue;
    }
    DLManagedTensor* managed = to_dlpack(tensor);
    const DLTensor& out = managed->dl_tensor;
    EXPECT_EQ(out.data, tensor.data());
    EXPECT_EQ(out.byte_offset, 0u);
    EXPECT_EQ(out.device.device_type, kDLCPU);
    EXPECT_EQ(out.dtype.code, name->second.code);
    EXPECT_EQ(out.dtype.bits, name->second.bits);
    EXPECT_EQ(out.dtype.lanes, 1);
    ASSERT_EQ(out.ndim, 3);
    EXPECT_EQ(std::vector<int64_t>(out.shape, out.shape + 3), (std::vector<int64_t>{2, 3, 4}));
    EXPECT_EQ(std::vector<int64_t>(out.strides, out.strides + 3), (std::vector<int64_t>{12, 4, 1}));
    Watched watched(managed);
    Tensor back = from_dlpack(managed);
    EXPECT_EQ(back.dtype(), dtype);
    EXPECT_EQ(back.dims(), tensor.dims());
    EXPECT_EQ(back.data(), tensor.data());
    std::vector<unsigned char> seen(bytes.size(), 0xa5);
    back.copy_to_host(seen.data());
    EXPECT_EQ(seen, bytes);
    EXPECT_EQ(watched.deleted, 0);
    back = Tensor();
    EXPECT_EQ(watched.deleted, 1);
  }
}

TEST_F(DLPack, NoTwoDTypesHaveOneName) {
  std::map<std::pair<int, int>, std::string_view> seen;
  for (const auto& [dtype, name] : names) {
    EXPECT_TRUE(seen.emplace(std::pair(name.code, name.bits), dtype).second) << dtype;
    EXPECT_TRUE(dtype_from_name(dtype)) << dtype << " is in the table of this test only";
  }
}

TEST_F(DLPack, AViewIsExportedWithItsStridesFromItsFirstElement) {
  const auto lent = LentMemory::of(random_floats(random_, 60));
  const Tensor view = transpose(slice(borrow(lent, {3, 4, 5}), 1, 1, 4, 2), 0, 2);
  DLManagedTensor* managed = to_dlpack(view);
  const DLTensor& out = managed->dl_tensor;
  ASSERT_EQ(out.ndim, 3);
  EXPECT_EQ(std::vector<int64_t>(out.shape, out.shape + 3), (std::vector<int64_t>{5, 2, 3}));
  EXPECT_EQ(std::vector<int64_t>(out.strides, out.strides + 3), (std::vector<int64_t>{1, 10, 20}));
  EXPECT_EQ(static_cast<char*>(out.data) + out.byte_offset, reinterpret_cast<char*>(lent->values.data() + 5));
  const Tensor back = from_dlpack(managed);
  EXPECT_EQ(back.to_host<float>(), view.to_host<float>());
  EXPECT_EQ(back.strides(), view.strides());
}

TEST_F(DLPack, AnExportKeepsTheMemoryAfterTheTensorIsGone) {
  const auto lent = LentMemory::of(random_floats(random_, 6));
  const std::vector<float> values = lent->values;
  Tensor tensor = borrow(lent, {2, 3});
  DLManagedTensor* one = to_dlpack(tensor);
  DLManagedTensor* two = to_dlpack(tensor);
  tensor = Tensor();
  EXPECT_EQ(lent->returned, 0);
  const auto* seen = static_cast<const float*>(one->dl_tensor.data);
  EXPECT_EQ(std::vector<float>(seen, seen + 6), values);
  one->deleter(one);
  EXPECT_EQ(lent->returned, 0) << "the other export still has it";
  std::thread([two] { two->deleter(two); }).join();
  EXPECT_EQ(lent->returned, 1);
}

TEST_F(DLPack, AnExportOfAllocatedMemoryKeepsItToo) {
  const std::vector<float> values = random_floats(random_, 1000);
  Tensor tensor = Tensor::from<float>(values, {1000}, Device::host());
  DLManagedTensor* managed = to_dlpack(tensor);
  tensor = Tensor();
  std::vector<Tensor> others;
  for (int i = 0; i < 8; ++i)
    others.push_back(Tensor::from<float>(std::vector<float>(1000, 9.0f), {1000}, Device::host()));
  const auto* seen = static_cast<const float*>(managed->dl_tensor.data);
  EXPECT_EQ(std::vector<float>(seen, seen + 1000), values);
  managed->deleter(managed);
}

TEST_F(DLPack, AnExportWaitsForPendingWrites) {
  constexpr int64_t elements = 1 << 16;
  const std::vector<float> values = random_floats(random_, elements);
  const Tensor there = Tensor::from<float>(values, {elements}, device());
  {
    const std::vector<float> sevens(elements, 7.0f);
    const Tensor poison = Tensor::from<float>(sevens, {elements}, Device::host());
  }
  fakes::async_control().delay_us = 2000;
  const Tensor here = there.to(Device::host());
  DLManagedTensor* managed = to_dlpack(here);
  const auto* seen = static_cast<const float*>(managed->dl_tensor.data);
  EXPECT_EQ(std::vector<float>(seen, seen + elements), values);
  managed->deleter(managed);
}

TEST_F(DLPack, AnExportOfWhatFailedTellsTheError) {
  const Tensor x = Tensor::from<float>(random_floats(random_, 64), {64}, device());
  fakes::async_control().fail_launch = 0;
  const Tensor bad = relu(x);
  expect_error([&] { to_dlpack(bad.to(Device::host())); }, Code::internal, {"this launch was told to fail", "relu"});
}

TEST_F(DLPack, MemoryOutOfTheHostsReachIsNotExported) {
  for (const Dims& dims : {Dims{4}, Dims{0, 4}}) {
    const Tensor there = Tensor::empty(dims, DType::f32, device());
    expect_error([&] { to_dlpack(there); }, Code::unsupported, {"async:0", "no address"});
    EXPECT_NE(error_of([&] { to_dlpack(there); }).remedy().find("to(Device::host())"), std::string::npos);
  }
}

TEST_F(DLPack, AValueBeingRecordedIsNotExported) {
  graph::Recorder recorder(Device::host());
  const Tensor value = recorder.input(DType::f32, {2, 3});
  expect_error([&] { to_dlpack(value); }, Code::invalid_argument, {"[2, 3]", "being recorded"});
}

TEST_F(DLPack, EmptyTensorsMakeTheRoundTrip) {
  for (bool memory : {false, true}) {
    const Tensor tensor = memory ? Tensor::empty({3, 0}, DType::i64, Device::host())
                                 : Tensor::borrow(nullptr, {3, 0}, {}, DType::i64, nullptr);
    DLManagedTensor* managed = to_dlpack(tensor);
    EXPECT_EQ(managed->dl_tensor.data == nullptr, !memory);
    Watched watched(managed);
    Tensor back = from_dlpack(managed);
    EXPECT_EQ(back.dims(), (Dims{3, 0}));
    EXPECT_EQ(back.dtype(), DType::i64);
    back = Tensor();
    EXPECT_EQ(watched.deleted, 1);
  }
}

TEST_F(DLPack, RankZeroMakesTheRoundTrip) {
  const Tensor tensor = Tensor::from<double>(std::vector<double>{-2.75}, {}, Device::host());
  DLManagedTensor* managed = to_dlpack(tensor);
  EXPECT_EQ(managed->dl_tensor.ndim, 0);
  EXPECT_EQ(from_dlpack(managed).item(), Scalar(-2.75));
}

TEST_F(DLPack, AnImportSharesTheMemoryAndDeletesItOnce) {
  Foreign foreign(random_floats(random_, 12), {3, 4});
  {
    Tensor tensor = from_dlpack(&foreign.managed);
    EXPECT_EQ(tensor.data(), foreign.values.data());
    EXPECT_EQ(tensor.device(), Device::host());
    EXPECT_EQ(tensor.strides(), (Dims{4, 1})) << "no strides are row-major";
    EXPECT_EQ(tensor.to_host<float>(), foreign.values);
    const float before = foreign.values[5];
    neg_(tensor);
    EXPECT_EQ(foreign.values[5], -before);
    const Tensor view = select(tensor, 0, 1);
    tensor = Tensor();
    EXPECT_EQ(foreign.deleted, 0);
  }
  EXPECT_EQ(foreign.deleted, 1);
}

TEST_F(DLPack, AnImportHonoursStridesAndByteOffset) {
  Foreign foreign(random_floats(random_, 40), {3, 2, 2}, {2, 17, 0});
  foreign.managed.dl_tensor.byte_offset = 12;
  const Tensor tensor = from_dlpack(&foreign.managed);
  EXPECT_EQ(tensor.data(), foreign.values.data() + 3);
  EXPECT_EQ(tensor.strides(), (Dims{2, 17, 0}));
  const std::vector<float> from_third(foreign.values.begin() + 3, foreign.values.end());
  EXPECT_EQ(tensor.to_host<float>(), walk(from_third, {3, 2, 2}, {2, 17, 0}));
}

TEST_F(DLPack, AnImportMayHaveNoDeleter) {
  Foreign foreign(random_floats(random_, 3), {3});
  foreign.managed.deleter = nullptr;
  EXPECT_EQ(from_dlpack(&foreign.managed).to_host<float>(), foreign.values);
}

TEST_F(DLPack, NoDataIsForNoElements) {
  Foreign foreign({}, {0, 5});
  foreign.managed.dl_tensor.data = nullptr;
  foreign.managed.dl_tensor.byte_offset = 64;
  Tensor tensor = from_dlpack(&foreign.managed);
  EXPECT_EQ(tensor.dims(), (Dims{0, 5}));
  EXPECT_EQ(tensor.data(), nullptr);
  tensor = Tensor();
  EXPECT_EQ(foreign.deleted, 1);
}

struct Refusal {
  const char* name;
  std::function<void(DLTensor&)> spoil;
  Code code;
  std::vector<std::string> parts;
};

TEST_F(DLPack, ARefusalNamesTheValueAndLeavesTheTensorToTheCaller) {
  constexpr Code bad = Code::invalid_argument, unsupported = Code::unsupported;
  static int64_t nine[9] = {1, 1, 1, 1, 1, 1, 1, 1, 1}, negative[2] = {2, -3}, backward[2] = {3, -1};
  static int64_t vast[2] = {int64_t{1} << 62, 8};
  const int32_t newer = 19;
  const Refusal refusals[] = {
      {"CUDA", [](DLTensor& t) { t.device.device_type = kDLCUDA; }, unsupported, {"device type 2"}},
      {"newer", [&](DLTensor& t) { std::memcpy(&t.device.device_type, &newer, 4); }, unsupported, {"device type 19"}},
      {"complex",
       [](DLTensor& t) {
         t.dtype = {kDLComplex, 64, 1};
       },
       unsupported,
       {"code 5", "64 bits"}},
      {"f24",
       [](DLTensor& t) {
         t.dtype = {kDLFloat, 24, 1};
       },
       unsupported,
       {"code 2", "24 bits"}},
      {"f8 of no format",
       [](DLTensor& t) {
         t.dtype = {kDLFloat, 8, 1};
       },
       unsupported,
       {"code 2", "8 bits"}},
      {"four lanes",
       [](DLTensor& t) {
         t.dtype = {kDLFloat, 32, 4};
       },
       unsupported,
       {"32 bits", "4 lanes"}},
      {"no lanes",
       [](DLTensor& t) {
         t.dtype = {kDLFloat, 32, 0};
       },
       unsupported,
       {"32 bits", "0 lanes"}},
      {"rank -1", [](DLTensor& t) { t.ndim = -1; }, bad, {"rank -1", "[0, 8]"}},
      {"rank 9", [](DLTensor& t) { t.ndim = 9, t.shape = nine; }, bad, {"rank 9", "[0, 8]"}},
      {"no shape", [](DLTensor& t) { t.shape = nullptr; }, bad, {"shape", "rank 2 is null"}},
      {"a negative dim", [](DLTensor& t) { t.shape = negative; }, bad, {"[2, -3]", "-3 is negative"}},
      {"too large", [](DLTensor& t) { t.shape = vast; }, bad, {"[4611686018427387904, 8]", "2^63 - 1"}},
      {"a negative stride",
       [](DLTensor& t) { t.strides = backward; },
       bad,
       {"from_dlpack", "[3, -1]", "-1 is negative"}},
      {"no data", [](DLTensor& t) { t.data = nullptr; }, bad, {"from_dlpack", "no data for 24 bytes", "[2, 3]"}},
      {"an odd offset", [](DLTensor& t) { t.byte_offset = 2; }, unsupported, {"2 bytes past a multiple of 4", "f32"}},
  };
  for (const Refusal& refusal : refusals) {
    SCOPED_TRACE(refusal.name);
    Foreign foreign(random_floats(random_, 6), {2, 3});
    refusal.spoil(foreign.managed.dl_tensor);
    expect_error([&] { from_dlpack(&foreign.managed); }, refusal.code, refusal.parts);
    EXPECT_EQ(foreign.deleted, 0);
  }
  expect_error([] { from_dlpack(nullptr); }, bad, {"from_dlpack", "null"});
}

TEST_F(DLPack, AfterARefusalTheSameTensorCanBeImported) {
  Foreign foreign(random_floats(random_, 6), {2, 3});
  foreign.managed.dl_tensor.ndim = 9;
  EXPECT_EQ(error_of([&] { from_dlpack(&foreign.managed); }).code(), Code::invalid_argument);
  foreign.managed.dl_tensor.ndim = 2;
  EXPECT_EQ(from_dlpack(&foreign.managed).to_host<float>(), foreign.values);
  EXPECT_EQ(foreign.deleted, 1);
}

TEST_F(DLPack, AnImportThatIsCopiedToADeviceIsDeletedAfterTheCopy) {
  constexpr int64_t elements = 1 << 18;
  poison(elements);
  Foreign foreign(random_floats(random_, elements), {elements});
  const std::vector<float> values = foreign.values;
  fakes::async_control().hold = true;
  const Tensor there = from_dlpack(&foreign.managed).to(device());
  EXPECT_EQ(foreign.deleted, 0);
  fakes::async_control().hold = false;
  EXPECT_EQ(there.to_host<float>(), values);
  while (foreign.deleted == 0) std::this_thread::yield();
  settle();
  EXPECT_EQ(foreign.deleted, 1);
}

}  // namespace
}  // namespace tenon::testing
