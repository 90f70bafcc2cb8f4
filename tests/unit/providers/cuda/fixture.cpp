#include "tests/unit/providers/cuda/fixture.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

namespace tenon::provider::cuda {
namespace {

// Finds a function of the fake by name.
template <class Function>
Function fake_function(const char* name) {
  static void* library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  void* symbol = library != nullptr ? dlsym(library, name) : nullptr;
  if (symbol == nullptr) {
    std::fprintf(stderr, "these tests want the fake driver: put lib/fakes/cuda into LD_LIBRARY_PATH.\n");
    std::exit(1);
  }
  return reinterpret_cast<Function>(symbol);
}

}  // namespace

bool on_fake() {
  static const bool on_device = std::getenv("CUDA_TESTS_ON_DEVICE") != nullptr;
  return !on_device;
}

fakes::cuda::Control& fake() {
  static fakes::cuda::Control nobodys;
  if (!on_fake()) return nobodys;
  static const auto control = fake_function<fakes::cuda::Control* (*)()>("fake_cuda_control");
  return *control();
}

size_t contexts_of_this_thread() {
  if (!on_fake()) return 0;
  static const auto contexts = fake_function<size_t (*)()>("fake_cuda_contexts");
  return contexts();
}

void FakeCuda::SetUp() {
  fake().reset();
  provider_ = std::make_unique<OpenProvider>("cuda");
}

void FakeCuda::close() {
  if (provider_ == nullptr) return;
  cuda().ops.stream_synchronize(cuda().stream, nullptr);
  for (ep_primitive* primitive : primitives_) cuda().ops.primitive_destroy(cuda().device, primitive);
  for (ep_event* one : events_) cuda().ops.event_destroy(cuda().device, one);
  for (ep_memory* memory : blocks_) cuda().ops.memory_free(cuda().device, memory);
  primitives_.clear();
  events_.clear();
  blocks_.clear();
  provider_.reset();
}

void FakeCuda::TearDown() {
  close();
  EXPECT_EQ(fake().violation(), "");
  EXPECT_EQ(fake().allocated.load(), 0);
  EXPECT_EQ(fake().pinned.load(), 0);
  EXPECT_EQ(fake().objects.load(), 0);
  EXPECT_EQ(contexts_of_this_thread(), 0U);
}

ep_memory* FakeCuda::block(uint64_t bytes) {
  ep_memory* memory = nullptr;
  EXPECT_EQ(cuda().ops.memory_allocate(cuda().device, 0, bytes, &memory, nullptr), EP_STATUS_OK);
  blocks_.push_back(memory);
  return memory;
}

void FakeCuda::put(ep_memory* memory, const void* bytes, uint64_t size) {
  EXPECT_EQ(cuda().ops.upload(cuda().stream, {memory, 0}, bytes, size, nullptr), EP_STATUS_OK);
  EXPECT_EQ(cuda().ops.stream_synchronize(cuda().stream, nullptr), EP_STATUS_OK);
}

void FakeCuda::read(ep_memory* memory, void* bytes, uint64_t size) {
  EXPECT_EQ(cuda().ops.download(cuda().stream, bytes, {memory, 0}, size, nullptr), EP_STATUS_OK);
  EXPECT_EQ(cuda().ops.stream_synchronize(cuda().stream, nullptr), EP_STATUS_OK);
}

ep_event* FakeCuda::event() {
  ep_event* made = nullptr;
  EXPECT_EQ(cuda().ops.event_create(cuda().device, &made, nullptr), EP_STATUS_OK);
  events_.push_back(made);
  return made;
}

void FakeCuda::wait(ep_event* recorded) {
  EXPECT_EQ(cuda().ops.event_host_wait(recorded, UINT64_MAX, nullptr), EP_STATUS_OK);
}

ep_status FakeCuda::launch(const ep_primitive_desc& desc, const std::vector<ep_memory*>& operands,
                           const std::vector<ep_scalar>& scalars, uint64_t tag) {
  ep_primitive* primitive = nullptr;
  ep_primitive_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_PRIMITIVE_INFO;
  ep_error* error = nullptr;
  const ep_status made = cuda().ops.primitive_create(cuda().device, &desc, &primitive, &info, &error);
  if (made != EP_STATUS_OK) return made;
  primitives_.push_back(primitive);
  made_by_.assign(info.implementation.data, info.implementation.size);
  std::vector<ep_buffer> buffers;
  for (ep_memory* memory : operands) buffers.push_back({memory, 0});
  ep_launch run{};
  run.operands = buffers.data();
  run.operand_count = static_cast<uint32_t>(buffers.size());
  run.scalars = scalars.data();
  run.scalar_count = static_cast<uint32_t>(scalars.size());
  run.tag = tag;
  if (info.workspace_bytes != 0) run.workspace = {block(info.workspace_bytes), 0};
  return cuda().ops.primitive_launch(primitive, cuda().stream, &run, nullptr, &error);
}

std::string FakeCuda::implementation_of(const ep_primitive_desc& desc) {
  ep_support_info info{};
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_SUPPORT_INFO;
  ep_error* error = nullptr;
  if (cuda().ops.primitive_support(cuda().device, &desc, &info, &error) != EP_STATUS_OK) return cuda().host.sentence();
  return std::string(info.implementation.data, info.implementation.size);
}

std::vector<float> random_floats(size_t count, uint32_t seed) {
  std::mt19937 engine(seed);
  std::uniform_real_distribution<float> values(-2, 2);
  std::vector<float> made(count);
  for (float& value : made) {
    do value = values(engine);
    while (value == 0);
  }
  return made;
}

}  // namespace tenon::provider::cuda
