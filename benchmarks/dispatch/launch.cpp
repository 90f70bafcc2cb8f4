// The cost of the stable ABI itself: a prepared relu on four floats, launched through the device's table, against a
// direct call of the same loop.
#include <array>
#include <vector>

#include "benchmarks/report/keep.h"
#include "benchmarks/report/report.h"
#include "core/device/device_state.h"
#include "core/tensor/device.h"
#include "providers/cpu/elementwise/kernel.h"

namespace {

constexpr int64_t kCount = 4;
constexpr double kSlackNs = 20;
using Floats = std::array<float, kCount>;

// A relu whose launches give the shape, as the host creates it.
ep_primitive* make_relu(tenon::DeviceState* device) {
  ep_primitive_desc desc{};
  desc.kind = EP_PRIMITIVE_unary;
  desc.attributes.unary.op = EP_UNARY_relu;
  desc.operand_count = 2;
  for (int i = 0; i < 2; ++i) {
    ep_operand_desc& operand = desc.operands[i];
    operand.role = i == 0 ? EP_ROLE_DST : EP_ROLE_SRC;
    operand.dtype = EP_DTYPE_f32;
    operand.rank = 1;
    operand.dims[0] = EP_ANY;
    operand.strides[0] = 1;
  }
  ep_primitive_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_PRIMITIVE_INFO;
  ep_primitive* primitive = nullptr;
  device->ops.primitive_create(device->handle, &desc, &primitive, &info, nullptr);
  return primitive;
}

ep_memory* memory_over(tenon::DeviceState* device, Floats& values) {
  ep_memory* memory = nullptr;
  device->ops.memory_import_host(device->handle, values.data(), sizeof values, &memory, nullptr);
  return memory;
}

}  // namespace

int main(int argc, char** argv) {
  namespace cpu = tenon::provider::cpu;
  alignas(64) static Floats src{-1.5f, 2.25f, -0.125f, 3.0f};
  alignas(64) static Floats dst{};
  tenon::DeviceState* device = tenon::Device("cpu").state();
  ep_primitive* relu = make_relu(device);
  const ep_buffer buffers[] = {{memory_over(device, dst), 0}, {memory_over(device, src), 0}};
  const int64_t dims[] = {kCount};
  const int64_t strides[] = {1};
  const ep_shape shapes[] = {{dims, strides, 1, 0}, {dims, strides, 1, 0}};
  const ep_launch launch{buffers, shapes, nullptr, 2, 0, {}, {}, 0};
  if (relu == nullptr) return 1;
  const auto through_abi = [&](int64_t n) {
    ep_fault fault{};
    for (int64_t i = 0; i < n; ++i) {
      device->ops.primitive_launch(relu, device->inline_stream, &launch, &fault, nullptr);
      tenon::bench::keep(dst);
    }
  };
  const cpu::MapFunction loop = cpu::vector_unary_kernel(cpu::best_simd_level(), EP_UNARY_relu, EP_DTYPE_f32).function;
  const auto directly = [&](int64_t n) {
    const void* sources[] = {src.data()};
    for (int64_t i = 0; i < n; ++i) {
      cpu::MapContext context;
      loop(dst.data(), sources, kCount, context);
      tenon::bench::keep(dst);
    }
  };
  const auto check = [&]() -> std::string {
    dst = {};
    through_abi(1);
    return dst == Floats{0, 2.25f, 0, 3.0f} ? "" : "relu is wrong";
  };
  tenon::bench::Row row{
      "launch of a ready relu, 4 floats", {"through the ABI", through_abi}, {{"called directly", directly}}};
  row.slack_ns = kSlackNs;
  row.check = check;
  return tenon::bench::run({row}, argc, argv);
}
