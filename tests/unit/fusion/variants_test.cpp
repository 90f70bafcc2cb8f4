// Every text of a kernel on the device of the tests: of all buckets, with indices of 32 and of 64 bits, with packs and
// without, at addresses where a pack is one access and at others. They give the results of the interpreter, and the
// same bits.
#include <gtest/gtest.h>

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "core/codegen/artifact/artifact.h"
#include "core/codegen/loop/interpret.h"
#include "core/primitive/compiled_module.h"
#include "core/tensor/device.h"
#include "core/vm/segment.h"
#include "core/vm/vm.h"
#include "primitives/text/format.h"
#include "tests/unit/codegen/memory.h"

namespace tenon::codegen {
namespace {

constexpr uint64_t kRoom = 256;  // bytes before and after a buffer

// The buffers of a kernel on the device, each `shift` elements after a multiple of 256 bytes.
class OnDevice {
 public:
  OnDevice(const Kernel& kernel, const Memory& memory, uint64_t shift) : device_(Device::current().state()) {
    for (size_t i = 0; i < kernel.buffers.size(); ++i) {
      const Buffer& buffer = kernel.buffers[i];
      Place& place = places_.emplace_back();
      place.output = buffer.output;
      place.offset = kRoom + shift * static_cast<uint64_t>(dtype_size(buffer.dtype));
      place.bytes.assign(memory.bytes(i).size() + 2 * kRoom + place.offset, 0x3c);
      std::copy(memory.bytes(i).begin(), memory.bytes(i).end(),
                place.bytes.begin() + static_cast<ptrdiff_t>(place.offset));
      place.storage = StorageOwner(value_or_throw(tenon::Storage::make_aligned(device_, place.bytes.size())));
      throw_if_error(vm::upload({place.storage.get(), 0, true, true}, place.bytes.data(), place.bytes.size(), {}));
    }
  }

  // Launches `variant`, and copies the outputs into `memory`. The bytes around them must not change.
  void run(const std::shared_ptr<const CompiledModule>& module, const Variant& variant, const ep_dialect_info& dialect,
           const std::vector<int64_t>& sizes, Memory* memory) {
    const int64_t items = value_or_throw(variant.items.run(sizes));
    if (items > 0) launch(module, value_or_throw(groups_for(static_cast<uint64_t>(items), dialect)), sizes);
    const std::vector<void*> addresses = memory->addresses();
    for (size_t i = 0; i < places_.size(); ++i) {
      Place& place = places_[i];
      std::vector<unsigned char> after(place.bytes.size());
      throw_if_error(vm::download(after.data(), {place.storage.get(), 0, false, false}, after.size()));
      const size_t count = memory->bytes(i).size();
      std::copy_n(after.begin() + static_cast<ptrdiff_t>(place.offset), count,
                  static_cast<unsigned char*>(addresses[i]));
      if (place.output) {
        std::fill_n(after.begin() + static_cast<ptrdiff_t>(place.offset), count, 0);
        std::fill_n(place.bytes.begin() + static_cast<ptrdiff_t>(place.offset), count, 0);
      }
      ASSERT_EQ(after, place.bytes) << module->name << " writes beside buffer " << i;
    }
  }

 private:
  struct Place {
    StorageOwner storage;
    std::vector<unsigned char> bytes;
    uint64_t offset = 0;
    bool output = false;
  };

  void launch(const std::shared_ptr<const CompiledModule>& module, const std::array<uint64_t, 3>& groups,
              const std::vector<int64_t>& sizes) {
    vm::SegmentBuilder builder(device_, static_cast<uint32_t>(places_.size()), nullptr);
    std::vector<vm::SegmentAddress> buffers;
    std::vector<vm::Operand> bindings;
    for (uint32_t i = 0; i < places_.size(); ++i) {
      buffers.push_back(vm::SegmentAddress::binding(i, places_[i].offset));
      bindings.emplace_back(places_[i].storage.get(), 0, places_[i].output, places_[i].output);
    }
    static constexpr OpName kName{"fused"};
    const NodeName node{kName, vm::kNoInputs, {}, "a kernel of the tests"};
    vm::SegmentKernelLaunch one;
    one.module = module;
    one.buffers = buffers;
    one.parameters = std::as_bytes(std::span(sizes));
    one.groups = groups;
    one.name = &node;
    throw_if_error(builder.add(one));
    const std::shared_ptr<const vm::Segment> segment = builder.finish();
    throw_if_error(vm::run({segment.get(), bindings, 0}));
    for (const Place& place : places_) throw_if_error(vm::settle(place.storage.get(), false, false));
  }

  DeviceState* const device_;
  std::vector<Place> places_;
};

// The options for texts of the device, with and without packs.
std::vector<ep_dialect_info> dialects() {
  std::vector<Dialect> all = dialects_of(Device::current().state());
  if (all.empty()) return {};
  ep_dialect_info plain = all[0].info, packed = plain;
  if (plain.dialect == EP_DIALECT_C) return {plain};
  plain.vector_bytes = 0;
  packed.vector_bytes = 16;
  return {plain, packed};
}

// Runs each text for sizes in its bucket.
void expect_variants(const std::string& text, const std::vector<std::vector<int64_t>>& parameters, double ulps,
                     double absolute) {
  const Kernel kernel = parsed(text);
  std::vector<Memory> expected;
  for (const std::vector<int64_t>& sizes : parameters) {
    expected.emplace_back(kernel, sizes, 7);
    throw_if_error(interpret(kernel, sizes, expected.back().addresses()));
  }
  for (const ep_dialect_info& dialect : dialects()) {
    const Artifact artifact = value_or_throw(make_artifact(kernel, {}, dialect));
    EXPECT_LE(artifact.variants.size(), 6U);
    std::vector<std::optional<Memory>> first(parameters.size());
    for (size_t number = 0; number < artifact.variants.size(); ++number) {
      const Variant& variant = artifact.variants[number];
      const std::shared_ptr<const CompiledModule> module =
          value_or_throw(compile_module(Device::current().state(), module_of(artifact.name, variant.text)));
      for (size_t i = 0; i < parameters.size(); ++i) {
        if (!artifact.holds(number, parameters[i])) continue;
        for (const uint64_t shift : {0, 1}) {
          Memory actual(kernel, parameters[i], 7);
          OnDevice(kernel, actual, shift).run(module, variant, dialect, parameters[i], &actual);
          const std::string what =
              fmt::format("{} for list {} of sizes ('{}', {} elements behind)", kernel.name, i, variant.name, shift);
          expect_near(kernel, expected[i], actual, ulps, absolute, what);
          if (!first[i]) first[i] = actual;
          for (size_t b = 0; b < kernel.buffers.size(); ++b) EXPECT_EQ(first[i]->bytes(b), actual.bytes(b)) << what;
          if (testing::Test::HasFailure()) FAIL() << variant.schedule << variant.text.text;
        }
      }
    }
  }
}

TEST(Variants, RowsOfAnyLength) {
  expect_variants(
      "kernel softmax\nsize n in [0, 65536]\nsize m in [1, 1048576]\naxis i n\naxis r m\nin x f32 n*m\nout y f32 n*m\n"
      "k = max f32 at i over r: x[i*m + r]\n"
      "e = value f32 at i r: exp(sub(x[i*m + r], k))\n"
      "s = sum f32 at i over r: e\n"
      "u = store y[i*m + r] at i r: div(e, s)\n",
      {{5, 1}, {5, 7}, {9, 64}, {3, 66}, {2, 2048}, {2, 2052}, {1, 2051}}, 32, 1e-7);
}

TEST(Variants, NormsOfNarrowFloats) {
  expect_variants(
      "kernel norm\nsize n in [1, 65536]\nsize m in [1, 65536]\naxis i n\naxis r m\nin x f16 n*m\nin w f32 m\n"
      "out y bf16 n*m\nout scale f32 n\n%0 = f32(x[i*m + r])\n"
      "s = mean f32 at i over r: square(%0)\nt = value f32 at i: rsqrt(add(s, 1e-06:f32))\n"
      "u = store y[i*m + r] at i r: bf16(mul(mul(%0, t), w[r]))\nv = store scale[i] at i: t\n",
      {{3, 5}, {3, 40}, {17, 8}, {2, 768}}, 8, 0);
}

TEST(Variants, ElementwiseOfSeveralTypes) {
  expect_variants(
      "kernel mixed\nsize n in [0, 65536]\nsize m in [1, 65536]\naxis i n\naxis j m\nin x f16 n*m\nin b u8 m\n"
      "in c bool n*m\nin d i16 n*m\nout y f16 n*m\nout z i8 n*m\n"
      "%0 = f32(x[i*m + j])\n%1 = where(c[i*m + j], f32(b[j]), %0)\n"
      "u = store y[i*m + j] at i j: f16(add(%0, %1))\n"
      "v = store z[i*m + j] at i j: i8(sub(d[i*m + j], 1:i16))\n",
      {{1, 3}, {3, 8}, {7, 33}, {40, 64}}, 1, 0);
}

TEST(Variants, FlatLoops) {
  expect_variants(
      "kernel gelu\nsize n in [0, 1048576]\naxis i n\nin x f32 n\nin z f32 n\nout y f32 n\n"
      "u = store y[i] at i: add(gelu(x[i]), z[i])\n",
      {{1}, {4}, {1023}, {1024}, {5000}}, 8, 1e-6);
}

// A part of a row from an odd position on, a row that repeats, and a gap before a load's condition.
TEST(Variants, LoadsThatAreNoPacks) {
  expect_variants(
      "kernel parts\nsize n in [1, 1048576]\nsize m in [4, 65536]\naxis i n\naxis j m\nin x f32 n*m + 3*n\nin r f32 n\n"
      "in q f32 n*m\nout y f32 n*m\n"
      "%0 = ge([j], [3])\n"
      "u = store y[i*m + j] at i j: add(add(x[i*m + 3*i + j + 3], r[i]), q[i*m + j - 3 if %0])\n",
      {{1, 4}, {3, 9}, {5, 40}}, 1, 0);
}

TEST(Variants, ColumnsAndTransposes) {
  expect_variants(
      "kernel columns\nsize n in [0, 65536]\nsize m in [1, 65536]\naxis j m\naxis r n\nin x f32 n*m\nout y f32 m\n"
      "s = sum f32 at j over r: x[r*m + j]\nt = store y[j] at j: s\n",
      {{3, 5}, {9, 64}, {70, 100}}, 32, 1e-5);
  expect_variants(
      "kernel turned\nsize n in [0, 65536]\nsize m in [1, 65536]\naxis i n\naxis j m\nin x f32 n*m\nout y f32 n*m\n"
      "u = store y[j*n + i] at i j: relu(x[i*m + j])\n",
      {{3, 5}, {8, 64}, {37, 20}}, 0, 0);
}

}  // namespace
}  // namespace tenon::codegen
