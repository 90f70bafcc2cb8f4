// The sample provider through the raw ABI: the minimal steps of a host, without Tenon's own host.
#include <dlfcn.h>
#include <elf.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/unit/ep_api/host.h"

namespace {

using tenon::unit::Host;

std::string sample_path() {
  const char* path = std::getenv("SAMPLE_PROVIDER");
  return path == nullptr ? "" : path;
}

class Sample : public testing::Test {
 protected:
  void SetUp() override {
    library_ = dlopen(sample_path().c_str(), RTLD_NOW | RTLD_LOCAL);
    ASSERT_NE(library_, nullptr) << dlerror();
    query_ = reinterpret_cast<ep_plugin_query_fn>(dlsym(library_, EP_PLUGIN_QUERY_SYMBOL));
    ASSERT_NE(query_, nullptr);
    plugin_.struct_size = sizeof plugin_;
    plugin_.struct_type = EP_STRUCT_PLUGIN_OPS;
    ASSERT_EQ(query_(&host_.table, &plugin_, &error_), EP_STATUS_OK) << host_.sentence;
    ops_.struct_size = sizeof ops_;
    ops_.struct_type = EP_STRUCT_DEVICE_OPS;
    ASSERT_EQ(plugin_.device_open(plugin_.plugin, 0, &device_, &ops_, &error_), EP_STATUS_OK) << host_.sentence;
    const ep_stream_desc desc{sizeof desc, EP_STRUCT_STREAM_DESC, nullptr, EP_STREAM_COMPUTE, 0, 0};
    ASSERT_EQ(ops_.stream_create(device_, &desc, &stream_, &error_), EP_STATUS_OK) << host_.sentence;
  }

  void TearDown() override {
    if (device_ != nullptr) {
      ops_.stream_destroy(device_, stream_);
      ops_.device_close(device_);
    }
    if (plugin_.plugin != nullptr) plugin_.shutdown(plugin_.plugin);
    EXPECT_EQ(host_.held, 0) << "bytes still held by the plug-in";
    if (library_ != nullptr) dlclose(library_);
  }

  ep_memory* upload(const std::vector<float>& values) {
    ep_memory* memory = nullptr;
    EXPECT_EQ(ops_.memory_allocate(device_, 0, values.size() * sizeof(float), &memory, &error_), EP_STATUS_OK);
    EXPECT_EQ(ops_.upload(stream_, {memory, 0}, values.data(), values.size() * sizeof(float), &error_), EP_STATUS_OK);
    return memory;
  }

  std::vector<float> download(ep_memory* memory, size_t count) {
    std::vector<float> values(count);
    EXPECT_EQ(ops_.download(stream_, values.data(), {memory, 0}, count * sizeof(float), &error_), EP_STATUS_OK);
    EXPECT_EQ(ops_.stream_synchronize(stream_, &error_), EP_STATUS_OK);
    return values;
  }

  void* library_ = nullptr;
  ep_plugin_query_fn query_ = nullptr;
  Host host_;
  ep_error* error_ = nullptr;
  ep_plugin_ops plugin_{};
  ep_device_ops ops_{};
  ep_device* device_ = nullptr;
  ep_stream* stream_ = nullptr;
};

// A dense f32 vector of `n` elements, or of a length that the launch gives.
ep_operand_desc vector_of(int32_t role, int64_t n) {
  ep_operand_desc operand{};
  operand.role = role;
  operand.dtype = EP_DTYPE_f32;
  operand.rank = 1;
  operand.dims[0] = n;
  operand.strides[0] = 1;
  return operand;
}

ep_primitive_desc relu_of(int64_t n) {
  ep_primitive_desc desc{};
  desc.kind = EP_PRIMITIVE_unary;
  desc.attributes.unary.op = EP_UNARY_relu;
  desc.operand_count = 2;
  desc.operands[0] = vector_of(EP_ROLE_DST, n);
  desc.operands[1] = vector_of(EP_ROLE_SRC, n);
  return desc;
}

std::vector<float> random_values(size_t count) {
  std::mt19937 generator(7);
  std::uniform_real_distribution<float> distribution(-2.0f, 2.0f);
  std::vector<float> values(count);
  for (float& value : values) value = distribution(generator);
  return values;
}

TEST(ElfNote, IsInTheFileAndNamesTheProvider) {
  std::ifstream file(sample_path(), std::ios::binary);
  std::vector<char> bytes((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  ASSERT_GT(bytes.size(), sizeof(Elf64_Ehdr));
  Elf64_Ehdr header;
  std::memcpy(&header, bytes.data(), sizeof header);
  bool found = false;
  for (int i = 0; i < header.e_phnum; i++) {
    Elf64_Phdr segment;
    std::memcpy(&segment, bytes.data() + header.e_phoff + static_cast<size_t>(i) * header.e_phentsize, sizeof segment);
    if (segment.p_type != PT_NOTE) continue;
    for (uint64_t at = segment.p_offset; at + sizeof(ep_note) <= segment.p_offset + segment.p_filesz;) {
      Elf64_Nhdr entry;
      std::memcpy(&entry, bytes.data() + at, sizeof entry);
      if (entry.n_descsz == sizeof(ep_plugin_note) && entry.n_type == EP_NOTE_TYPE) {
        ep_note note;
        std::memcpy(&note, bytes.data() + at, sizeof note);
        if (std::memcmp(note.owner, EP_NOTE_OWNER, sizeof(EP_NOTE_OWNER)) == 0) {
          found = true;
          EXPECT_STREQ(note.desc.name, "sample");
          EXPECT_STREQ(note.desc.version, "1.0.0");
          EXPECT_EQ(note.desc.struct_size, sizeof(ep_plugin_note));
          EXPECT_EQ(note.desc.abi_major, EP_ABI_MAJOR);
          EXPECT_EQ(note.desc.abi_minor, EP_ABI_MINOR);
          EXPECT_EQ(note.desc.sanitizer, static_cast<uint32_t>(EP_SANITIZER_OF_THIS_BUILD));
          EXPECT_NE(note.desc.toolchain[0], '\0');
        }
      }
      at += sizeof entry + (entry.n_namesz + 3) / 4 * 4 + (entry.n_descsz + 3) / 4 * 4;
    }
  }
  EXPECT_TRUE(found);
}

TEST_F(Sample, DescribesOneSynchronousDevice) {
  uint32_t count = 0;
  ASSERT_EQ(plugin_.device_count(plugin_.plugin, &count, &error_), EP_STATUS_OK);
  EXPECT_EQ(count, 1u);
  ep_device_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(plugin_.device_info(plugin_.plugin, 0, &info, &error_), EP_STATUS_OK);
  EXPECT_EQ(info.struct_type, static_cast<uint32_t>(EP_STRUCT_DEVICE_INFO));
  EXPECT_NE(info.flags & EP_DEVICE_FLAG_SYNCHRONOUS, 0u);
  EXPECT_EQ(info.device_class, EP_DEVICE_CLASS_SOFTWARE);
  EXPECT_EQ(info.pool_count, 1u);
  EXPECT_EQ(info.unusable_reason.size, 0u);
  EXPECT_EQ(plugin_.device_info(plugin_.plugin, 1, &info, &error_), EP_STATUS_NOT_FOUND);
  EXPECT_EQ(host_.sentence, "There is no device 1, only device 0.");
}

TEST_F(Sample, WritesNoFurtherThanTheHostsStruct) {
  ep_device_info info;
  std::memset(&info, 0xAB, sizeof info);
  info.struct_size = offsetof(ep_device_info, fingerprint);
  ASSERT_EQ(plugin_.device_info(plugin_.plugin, 0, &info, &error_), EP_STATUS_OK);
  EXPECT_EQ(info.struct_size, offsetof(ep_device_info, fingerprint));
  EXPECT_EQ(std::string(info.name.data, info.name.size), "Sample device in host memory");
  const auto* tail = reinterpret_cast<const unsigned char*>(&info);
  for (size_t i = offsetof(ep_device_info, fingerprint); i < sizeof info; i++) ASSERT_EQ(tail[i], 0xAB) << i;
}

TEST_F(Sample, ReluOfStaticShapeEqualsStdMaxAndKeepsNan) {
  std::vector<float> src = random_values(37);
  src[5] = NAN;
  src[6] = -0.0f;
  src[7] = INFINITY;
  src[8] = -INFINITY;
  ep_primitive_desc desc = relu_of(37);
  ep_support_info support{};
  support.struct_size = sizeof support;
  ASSERT_EQ(ops_.primitive_support(device_, &desc, &support, &error_), EP_STATUS_OK) << host_.sentence;
  EXPECT_EQ(std::string(support.implementation.data, support.implementation.size), "plain");
  ep_primitive* primitive = nullptr;
  ep_primitive_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(ops_.primitive_create(device_, &desc, &primitive, &info, &error_), EP_STATUS_OK) << host_.sentence;
  EXPECT_GT(info.host_bytes, 0u);
  ep_memory* from = upload(src);
  ep_memory* to = upload(std::vector<float>(37, 777.0f));
  const ep_buffer operands[] = {{to, 0}, {from, 0}};
  ep_launch launch{};
  launch.operands = operands;
  launch.operand_count = 2;
  ep_fault fault{};
  ASSERT_EQ(ops_.primitive_launch(primitive, stream_, &launch, &fault, &error_), EP_STATUS_OK) << host_.sentence;
  std::vector<float> dst = download(to, 37);
  for (size_t i = 0; i < 37; i++) {
    if (i == 5) {
      EXPECT_TRUE(std::isnan(dst[i]));
    } else {
      EXPECT_EQ(dst[i], std::max(src[i], 0.0f)) << i;
    }
  }
  ops_.memory_free(device_, from);
  ops_.memory_free(device_, to);
  ops_.primitive_destroy(device_, primitive);
}

TEST_F(Sample, OneReluServesEveryLengthStrideAndOffset) {
  ep_primitive_desc desc = relu_of(1);
  for (int i = 0; i < 2; i++) {
    desc.operands[i].dims[0] = EP_ANY;
    desc.operands[i].strides[0] = EP_ANY;
  }
  ep_primitive* primitive = nullptr;
  ep_primitive_info info{};
  info.struct_size = sizeof info;
  ASSERT_EQ(ops_.primitive_create(device_, &desc, &primitive, &info, &error_), EP_STATUS_OK) << host_.sentence;
  std::vector<float> values = random_values(64);
  ep_memory* memory = upload(values);
  ep_memory* to = upload(std::vector<float>(64, 777.0f));
  for (int64_t n : {1, 5, 20}) {
    const int64_t strides[] = {2, 3};
    ep_shape shapes[2];
    for (int i = 0; i < 2; i++) shapes[i] = {&n, &strides[i], 1, 0};
    const ep_buffer operands[] = {{to, 4}, {memory, 8}};
    ep_launch launch{};
    launch.operands = operands;
    launch.shapes = shapes;
    launch.operand_count = 2;
    ASSERT_EQ(ops_.primitive_launch(primitive, stream_, &launch, nullptr, &error_), EP_STATUS_OK) << host_.sentence;
    std::vector<float> dst = download(to, 64);
    for (size_t i = 0; i < 64; i++) {
      bool written = i % 2 == 1 && i / 2 < static_cast<size_t>(n);
      EXPECT_EQ(dst[i], written ? std::max(values[2 + i / 2 * 3], 0.0f) : 777.0f) << "n " << n << ", element " << i;
    }
  }
  ops_.memory_free(device_, memory);
  ops_.memory_free(device_, to);
  ops_.primitive_destroy(device_, primitive);
}

struct Refusal {
  const char* name;
  void (*change)(ep_primitive_desc&);
  const char* reason;
};

class SampleRefuses : public Sample, public testing::WithParamInterface<Refusal> {};

TEST_P(SampleRefuses, WithAReasonAndLeavesTheOutputsAlone) {
  ep_primitive_desc desc = relu_of(8);
  GetParam().change(desc);
  ep_support_info support;
  std::memset(&support, 0xAB, sizeof support);
  ep_support_info before = support;
  EXPECT_EQ(ops_.primitive_support(device_, &desc, &support, &error_), EP_STATUS_UNSUPPORTED);
  EXPECT_EQ(host_.status, EP_STATUS_UNSUPPORTED);
  EXPECT_EQ(host_.sentence, GetParam().reason);
  EXPECT_EQ(std::memcmp(&support, &before, sizeof support), 0);
  EXPECT_EQ(ops_.primitive_support(device_, &desc, &support, nullptr), EP_STATUS_UNSUPPORTED);
}

INSTANTIATE_TEST_SUITE_P(
    All, SampleRefuses,
    testing::Values(
        Refusal{"OtherKind", [](ep_primitive_desc& d) { d.kind = EP_PRIMITIVE_matmul; },
                "sample has relu and add, not matmul."},
        Refusal{"UnknownKind", [](ep_primitive_desc& d) { d.kind = 47; }, "sample has relu and add, not unknown."},
        Refusal{"OtherOp", [](ep_primitive_desc& d) { d.attributes.unary.op = EP_UNARY_exp; },
                "sample has relu and add, not exp."},
        Refusal{"OtherDtype", [](ep_primitive_desc& d) { d.operands[1].dtype = EP_DTYPE_f64; },
                "sample computes f32; operand 1 is f64."},
        Refusal{"Rank", [](ep_primitive_desc& d) { d.operands[0].rank = 3; }, "sample loops over one dim, not 3."},
        Refusal{"ScalarOperand", [](ep_primitive_desc& d) { d.operands[1].flags = EP_OPERAND_FLAG_SCALAR; },
                "sample reads memory; operand 1 has flags 0x1."},
        Refusal{"Role", [](ep_primitive_desc& d) { d.operands[1].role = EP_ROLE_BIAS; },
                "operand 1 has role 6, where sample takes 2."},
        Refusal{"Flag", [](ep_primitive_desc& d) { d.flags = UINT64_C(1) << 40; },
                "sample has no unary with extension 0x0, baked scalars 0x0, flags 0x10000000000, sums in f32, "
                "precision 0."},
        Refusal{"Extension", [](ep_primitive_desc& d) { d.extensions[0] = 0x10000; },
                "sample has no unary with extension 0x10000, baked scalars 0x0, flags 0x0, sums in f32, precision 0."},
        Refusal{"Epilogue",
                [](ep_primitive_desc& d) {
                  d.epilogue_count = 1;
                  d.epilogues[0] = {1, EP_UNARY_relu, 0, 4};
                },
                "sample has no unary with an epilogue (relu)."},
        Refusal{"Accumulation", [](ep_primitive_desc& d) { d.accumulate_dtype = EP_DTYPE_f64; },
                "sample has no unary with extension 0x0, baked scalars 0x0, flags 0x0, sums in f64, precision 0."},
        Refusal{"Precision", [](ep_primitive_desc& d) { d.precision = 9; },
                "sample has no unary with extension 0x0, baked scalars 0x0, flags 0x0, sums in f32, precision 9."}),
    [](const testing::TestParamInfo<Refusal>& info) { return info.param.name; });

TEST_F(Sample, QueryRefusesAnotherMinorAndMakesIndependentPlugins) {
  Host other;
  other.table.abi_minor = EP_ABI_MINOR + 1;
  ep_plugin_ops ops{};
  ops.struct_size = sizeof ops;
  ep_error* error = nullptr;
  EXPECT_EQ(query_(&other.table, &ops, &error), EP_STATUS_VERSION);
  EXPECT_EQ(error, reinterpret_cast<ep_error*>(&other));
  EXPECT_EQ(ops.plugin, nullptr);
  other.table.abi_minor = EP_ABI_MINOR;
  ASSERT_EQ(query_(&other.table, &ops, &error), EP_STATUS_OK);
  EXPECT_NE(ops.plugin, plugin_.plugin);
  ops.shutdown(ops.plugin);
  EXPECT_EQ(other.held, 0);
}

TEST_F(Sample, TooLargeAnAllocationIsAnErrorNotACrash) {
  ep_memory* memory = nullptr;
  EXPECT_EQ(ops_.memory_allocate(device_, 0, UINT64_MAX - 8, &memory, &error_), EP_STATUS_OUT_OF_DEVICE_MEMORY);
  EXPECT_EQ(memory, nullptr);
  ops_.memory_free(device_, nullptr);
  ops_.primitive_destroy(device_, nullptr);
}

}  // namespace
