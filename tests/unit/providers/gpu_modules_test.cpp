// Kernel modules of the providers vulkan, opencl and cuda, over the raw ABI: the addresses of arguments, refusals,
// stored blobs, and helpers that hang, die or give wrong answers. MODULES_PROVIDER names the provider.
#include <dlfcn.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <random>
#include <thread>

#include "primitives/text/format.h"
#include "tests/fakes/cuda/control.h"
#include "tests/unit/providers/module_fixture.h"
#include "tests/unit/providers/opencl/shim.h"
#include "tests/unit/providers/vulkan/shim.h"
#include "tests/unit/scratch_folder.h"

namespace tenon::provider {
namespace {

namespace fs = std::filesystem;

std::string provider_name() {
  const char* name = std::getenv("MODULES_PROVIDER");
  return name != nullptr ? name : "vulkan";
}

constexpr uint32_t group = 32;

// y[i] = the sum of element i of all inputs and of all words of the parameters except the first, which is the count.
std::string sum_text(int32_t dialect, uint32_t inputs, uint32_t words) {
  std::string sum;
  if (dialect == EP_DIALECT_GLSL) {
    for (uint32_t i = 0; i < inputs; ++i) sum += fmt::format(" + Floats(ep_buffers[{}]).v[i]", i + 1);
    for (uint32_t i = 0; i + 1 < words; ++i) sum += fmt::format(" + float(ep_parameters.more[{}])", i);
    const std::string more = words > 1 ? fmt::format("int64_t more[{}];", words - 1) : "";
    const std::string guard = words > 0 ? "if (i >= ep_parameters.count) return;" : "";
    return fmt::format(
        "layout(buffer_reference, scalar, buffer_reference_align = 4) buffer Floats {{ float v[]; }};\n{}"
        "EP_PARAMETERS\nvoid sum() {{ const uint i = gl_GlobalInvocationID.x; {} Floats(ep_buffers[0]).v[i] = 0.0{}; "
        "}}\n",
        words > 0 ? fmt::format("struct Parameters {{ int64_t count; {} }};\n", more) : "", guard, sum);
  }
  const bool opencl = dialect == EP_DIALECT_OPENCL_C;
  const char* const global = opencl ? "__global " : "";
  std::string head = fmt::format("{}float* /* the result, which a ( spoils */ y", global);
  for (uint32_t i = 0; i < inputs; ++i) {
    head += fmt::format(",\n  {}const float *{} x{}", global, opencl ? "restrict" : "", i);
    sum += fmt::format(" + x{}[i]", i);
  }
  for (uint32_t i = 0; i + 1 < words; ++i) sum += fmt::format(" + (float)p.more[{}]", i);
  if (words > 0) head += ", const Parameters p";
  const std::string more = words > 1 ? fmt::format("int64_t more[{}];", words - 1) : "";
  const char* const kernel = opencl ? "__kernel void" : "extern \"C\" __global__ void";
  const char* const function = opencl ? "float" : "__device__ float";
  const char* const item = opencl ? "get_global_id(0)" : "(long long)blockIdx.x * blockDim.x + threadIdx.x";
  return fmt::format(
      "// sum( is not the head\ntypedef struct {{ int64_t count; {} }} Parameters;\n{} other(float x);\n"
      "{} sum({}) // here it ends\n{{ const int64_t i = {}; {} y[i] = 0.0f{}; }}\n",
      more, function, kernel, head, item, words > 0 ? "if (i >= p.count) return;" : "", sum);
}

const char* wrong_text(int32_t dialect) {
  switch (dialect) {
    case EP_DIALECT_GLSL: return "// one\nEP_PARAMETERS\nvoid sum() { missing = 1; }\nvoid g() { also_missing = 1; }\n";
    case EP_DIALECT_OPENCL_C: return "// one\n// two\n__kernel void sum() { missing = 1; }\n";
    default: return "// one\n// two\nextern \"C\" __global__ void sum() { missing = 1; }\n";
  }
}

class GpuModules : public ::testing::Test {
 protected:
  void SetUp() override {
    provider = std::make_unique<OpenProvider>(provider_name(), settings);
    info.struct_size = sizeof info;
    info.struct_type = EP_STRUCT_DIALECT_INFO;
    ep_error* error = nullptr;
    if (provider->ops.dialect_info(provider->device, 0, &info, &error) == EP_STATUS_OK) return;
    GTEST_SKIP() << provider->host.sentence();
  }

  ep_memory* allocate(uint64_t bytes) {
    ep_memory* memory = nullptr;
    ep_error* error = nullptr;
    EXPECT_EQ(provider->ops.memory_allocate(provider->device, 0, bytes, &memory, &error), EP_STATUS_OK);
    return memory;
  }

  // Runs `sum` of `module` on random numbers, with buffers at any offset. Returns the number of wrong results.
  size_t wrong_sums(Module& module, uint32_t inputs, uint32_t words) {
    constexpr size_t count = 1000;
    std::mt19937 generator(inputs * 131 + words);
    std::vector<std::vector<float>> all(inputs + 1, std::vector<float>(count));
    std::vector<int64_t> parameters(words);
    std::vector<float> wanted(count, 0);
    for (uint32_t i = 1; i <= inputs; ++i) {
      for (size_t k = 0; k < count; ++k) wanted[k] += all[i][k] = static_cast<float>(generator() % 1000 + 1);
    }
    for (uint32_t i = 1; i < words; ++i) {
      parameters[i] = generator() % 1000 + 1;
      for (float& one : wanted) one += static_cast<float>(parameters[i]);
    }
    const size_t computed = words > 0 ? count : count / group * group;
    if (words > 0) parameters[0] = count;
    ep_error* error = nullptr;
    OpenProvider& open = *provider;
    std::vector<ep_buffer> buffers;
    std::vector<float> poison(count, -1);
    for (uint32_t i = 0; i <= inputs; ++i) {
      const uint64_t offset = 4 * (generator() % 77);
      buffers.push_back({allocate(offset + count * 4), offset});
      const float* data = i == 0 ? poison.data() : all[i].data();
      EXPECT_EQ(open.ops.upload(open.stream, buffers[i], data, count * 4, &error), EP_STATUS_OK);
    }
    ep_kernel_launch launch{};
    launch.buffers = buffers.data();
    launch.buffer_count = inputs + 1;
    launch.parameters = parameters.data();
    launch.parameter_bytes = words * 8;
    launch.groups[0] = words > 0 ? (count + group - 1) / group : count / group;
    launch.groups[1] = launch.groups[2] = 1;
    EXPECT_EQ(open.ops.kernel_launch(module.kernel("sum"), open.stream, &launch, nullptr, &error), EP_STATUS_OK)
        << open.host.sentence();
    // Borrowed arguments are not kept.
    std::fill(parameters.begin(), parameters.end(), -77);
    std::vector<float> y(count);
    EXPECT_EQ(open.ops.download(open.stream, y.data(), buffers[0], count * 4, &error), EP_STATUS_OK);
    EXPECT_EQ(open.ops.stream_synchronize(open.stream, &error), EP_STATUS_OK);
    size_t wrong = 0;
    for (size_t k = 0; k < count; ++k) wrong += y[k] != (k < computed ? wanted[k] : -1) ? 1 : 0;
    for (const ep_buffer& buffer : buffers) open.ops.memory_free(open.device, buffer.memory);
    return wrong;
  }

  ep_status create(Module& module, uint32_t inputs, uint32_t words, const std::string& front = {}) {
    module.dialect = info.dialect;
    module.add_entry("sum", inputs + 1, words * 8, 0, 0, group);
    return module.create(front + sum_text(info.dialect, inputs, words));
  }

  Settings settings;
  std::unique_ptr<OpenProvider> provider;
  ep_dialect_info info{};
};

// Push constants have room for 128 bytes, and arguments of OpenCL for some more.
TEST_F(GpuModules, FindBuffersAndParametersWhereverTheyLie) {
  for (const auto& [inputs, words] :
       {std::pair{1u, 1u}, {2u, 0u}, {3u, 12u}, {13u, 2u}, {14u, 3u}, {20u, 0u}, {5u, 380u}, {30u, 90u}}) {
    Module module(*provider);
    ASSERT_EQ(create(module, inputs, words), EP_STATUS_OK) << provider->host.sentence();
    EXPECT_EQ(wrong_sums(module, inputs, words), 0u) << inputs << " inputs, " << words << " words";
  }
}

TEST_F(GpuModules, AnswerWithTheFirstErrorAndItsLine) {
  Module module(*provider);
  module.dialect = info.dialect;
  module.add_entry("sum", 0, 0);
  EXPECT_EQ(module.create(wrong_text(info.dialect)), EP_STATUS_INVALID_ARGUMENT);
  const std::string sentence = provider->host.sentence();
  EXPECT_NE(sentence.find("line 3:"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("missing"), std::string::npos) << sentence;
  EXPECT_NE(sentence.find("'test'"), std::string::npos) << sentence;
  ASSERT_EQ(module.said.size(), 1u);
}

TEST_F(GpuModules, RefuseWhatIsNoModuleOfTheirs) {
  const auto refused = [&](ep_status status, const std::string& word, const auto& change) {
    Module module(*provider);
    module.dialect = info.dialect;
    module.add_entry("sum", 2, 8, 0, 0, group);
    change(module);
    EXPECT_EQ(module.create(sum_text(info.dialect, 1, 1)), status) << word;
    EXPECT_NE(provider->host.sentence().find(word), std::string::npos) << word << ": " << provider->host.sentence();
  };
  const uint32_t many = info.group_items + 1;
  refused(EP_STATUS_UNSUPPORTED, "dialect 1", [](Module& module) { module.dialect = EP_DIALECT_C; });
  refused(EP_STATUS_INVALID_ARGUMENT, "groups of 32 x 0", [](Module& module) { module.entries[0].group[1] = 0; });
  refused(EP_STATUS_UNSUPPORTED, fmt::format("groups of {}", many),
          [&](Module& module) { module.entries[0].group[0] = many; });
  refused(EP_STATUS_UNSUPPORTED, "buffers",
          [&](Module& module) { module.entries[0].buffer_count = info.greatest_buffers; });
  refused(EP_STATUS_UNSUPPORTED, "parameters", [&](Module& module) { module.entries[0].parameter_bytes = 1u << 20; });
  refused(EP_STATUS_UNSUPPORTED, "shared memory", [&](Module& module) { module.entries[0].shared_bytes = 1u << 30; });
  refused(EP_STATUS_INVALID_ARGUMENT, "no entry", [](Module& module) { module.entries.clear(); });
  refused(EP_STATUS_INVALID_ARGUMENT, "cosine", [](Module& module) { module.entries[0].name = {"cosine", 6}; });
  if (info.dialect != EP_DIALECT_OPENCL_C) return;
  refused(EP_STATUS_INVALID_ARGUMENT, "3 parameters; its description has 4",
          [](Module& module) { module.entries[0].flags = EP_ENTRY_FLAG_FAULTS; });
}

TEST_F(GpuModules, AreKeptByTheHostAndCompiledAnewWhereWhatWasKeptIsDamaged) {
  // A text with a compiler warning: a compiled module has the message, a stored one does not.
  const std::string warns =
      info.dialect == EP_DIALECT_GLSL ? "#extension GL_EXT_not_there : enable\n" : "#warning hello\n";
  const auto compiled = [&] {
    Module module(*provider);
    const ep_status status = create(module, 2, 2, warns);
    EXPECT_EQ(status, EP_STATUS_OK) << provider->host.sentence();
    if (status == EP_STATUS_OK) {
      EXPECT_EQ(wrong_sums(module, 2, 2), 0u);
    }
    return !module.said.empty();
  };
  EXPECT_TRUE(compiled());
  EXPECT_FALSE(compiled());
  const auto whole = provider->host.blobs();
  std::mt19937 generator(5);
  for (int round = 0; round < 4; ++round) {
    auto blobs = whole;
    for (auto& [key, blob] : blobs) {
      if (key.find("kernel module") == std::string::npos) continue;
      if (round == 0) {
        blob.resize(generator() % blob.size());
      } else {
        blob[generator() % blob.size()] ^= static_cast<char>(1 << round);
      }
    }
    provider->host.put_blobs(blobs);
    EXPECT_TRUE(compiled()) << "damage " << round;
  }
}

TEST_F(GpuModules, AreCompiledOnSeveralThreadsAtOnce) {
  std::vector<std::thread> threads;
  for (uint32_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      Module module(*provider);
      EXPECT_EQ(create(module, 3 + thread, 2), EP_STATUS_OK);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

TEST_F(GpuModules, LeaveNothingBehind) {
  const int64_t held = provider->host.held();
  {
    Module module(*provider);
    ASSERT_EQ(create(module, 2, 40), EP_STATUS_OK);
  }
  EXPECT_EQ(provider->host.held(), held);
}

TEST_F(GpuModules, AreNotCompiledOnceTheHostWantsToStop) {
  provider->host.cancel(true);
  Module module(*provider);
  EXPECT_EQ(create(module, 2, 3), EP_STATUS_CANCELLED);
  EXPECT_NE(provider->host.sentence().find("cancelled the compilation"), std::string::npos)
      << provider->host.sentence();
  provider->host.cancel(false);
  Module later(*provider);
  EXPECT_EQ(create(later, 2, 3), EP_STATUS_OK) << provider->host.sentence();
}

// With a full disk the helper of Vulkan writes no file, and PoCL's driver continues without its own cache or fails. A
// failure is not blamed on the text, and the next module is created.
TEST_F(GpuModules, AreMadeOrUnsupportedWhereTheDiskIsFullAndMadeLater) {
  if (info.dialect == EP_DIALECT_CUDA_C) GTEST_SKIP() << "the fake NVRTC takes a full disk for a wrong text";
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  const rlimit small = {500, before.rlim_max};
  const auto handler = signal(SIGXFSZ, SIG_IGN);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  Module module(*provider);
  const ep_status full = create(module, 2, 5);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  signal(SIGXFSZ, handler);
  EXPECT_TRUE(full == EP_STATUS_OK || full == EP_STATUS_UNSUPPORTED) << full << ": " << provider->host.sentence();
  Module later(*provider);
  ASSERT_EQ(create(later, 2, 6), EP_STATUS_OK) << provider->host.sentence();
  EXPECT_EQ(wrong_sums(later, 2, 6), 0u);
}

TEST_F(GpuModules, SayOfAKernelWhatTheDriverSays) {
  Module module(*provider);
  ASSERT_EQ(create(module, 2, 2), EP_STATUS_OK);
  module.kernel("sum");
  const bool cuda = info.dialect == EP_DIALECT_CUDA_C;
  EXPECT_EQ(module.info.registers > 0, cuda);
  EXPECT_LT(module.info.registers, 256u);
  EXPECT_EQ(module.info.groups_at_once > 0, cuda);
  EXPECT_LE(module.info.groups_at_once, 2048 / group);
  EXPECT_LT(module.info.spilled_bytes, 1u << 20);
}

std::string helper_name() {
  return fmt::format("tenon-compile-{}", provider_name() == "vulkan" ? "glsl" : provider_name());
}

// A tree with the plug-in and, instead of its helper, a program that answers who it is and then behaves as `does` says.
class FakeHelper {
 public:
  explicit FakeHelper(const std::string& does) {
    const char* before = std::getenv("PROVIDERS_FOLDER");
    before_ = before != nullptr ? before : ".";
    const std::string plugins = folder_.make_folder("lib/tenon");
    const std::string file = fmt::format("libtenon_{}.so", provider_name());
    fs::create_symlink(fs::absolute(fmt::format("{}/{}", before_, file)), fmt::format("{}/{}", plugins, file));
    const std::string helper =
        folder_.write(fmt::format("libexec/tenon/{}", helper_name()), fmt::format(R"(#!/usr/bin/python3
import os, socket, struct, sys, time
plug = socket.socket(fileno=3)
def take(count):
  data = b""
  while len(data) < count:
    more = plug.recv(count - len(data))
    if not more: sys.exit(0)
    data += more
  return data
def answer(result, output, binary=b""):
  plug.sendall(struct.pack("<IIQQ", result, 0, len(output), len(binary)) + output + binary)
while True:
  ask, target, seconds, reserved, size = struct.unpack("<IIIIQ", take(24))
  take(size)
  if ask == 0: answer(0, b"mine 1.0\nit")
  else: {}
)",
                                                                                  does));
    chmod(helper.c_str(), 0755);
    setenv("PROVIDERS_FOLDER", plugins.c_str(), 1);
  }
  ~FakeHelper() { setenv("PROVIDERS_FOLDER", before_.c_str(), 1); }
  FakeHelper(const FakeHelper&) = delete;
  FakeHelper& operator=(const FakeHelper&) = delete;
  const ScratchFolder& folder() const { return folder_; }

 private:
  const ScratchFolder folder_;
  std::string before_;
};

class GpuHelpers : public GpuModules {
 protected:
  void SetUp() override {}
  // The result of module_create if the helper behaves as `does` says.
  std::string said(const std::string& does, ep_status status, Settings with = {}) {
    const FakeHelper fake(does);
    settings = std::move(with);
    GpuModules::SetUp();
    Module module(*provider);
    EXPECT_EQ(create(module, 1, 1), status) << provider->host.sentence();
    return provider->host.sentence();
  }
};

TEST_F(GpuHelpers, ThatHangAreKilledAtTheirDeadline) {
  std::string mark;
  const ScratchFolder folder;
  mark = fmt::format("{}/pid", folder.path());
  const std::string hangs = fmt::format("open('{}', 'w').write(str(os.getpid())); time.sleep(60)", mark);
  const std::string sentence = said(hangs, EP_STATUS_UNSUPPORTED, {{"compile_seconds", "3"}});
  EXPECT_NE(sentence.find("(mine 1.0) did not end within 3 s and was killed"), std::string::npos) << sentence;
  pid_t process = 0;
  std::ifstream(mark) >> process;
  ASSERT_GT(process, 0);
  for (int look = 0; look < 500 && kill(process, 0) == 0; ++look) usleep(10'000);
  EXPECT_NE(kill(process, 0), 0);
}

TEST_F(GpuHelpers, AreStoppedWhereTheHostWantsToStop) {
  const FakeHelper fake("time.sleep(60)");
  GpuModules::SetUp();
  std::thread stopper([&] {
    usleep(200'000);
    provider->host.cancel(true);
  });
  Module module(*provider);
  EXPECT_EQ(create(module, 1, 1), EP_STATUS_CANCELLED) << provider->host.sentence();
  stopper.join();
}

// A driver whose device can be lost on request: the fake of CUDA, or a shim in front of the real one.
class LosingDriver {
 public:
  LosingDriver() {
    const char* shim = std::getenv("MODULES_SHIM");
    library_ = provider_name() == "cuda" ? "libcuda.so.1" : shim != nullptr ? shim : "";
    void* driver = library_.empty() ? nullptr : dlopen(library_.c_str(), RTLD_NOW);
    cuda_ = control<fakes::cuda::Control>(driver, "fake_cuda_control");
    vulkan_ = control<ShimControl>(driver, "shim_control");
    opencl_ = control<OpenclShimControl>(driver, "opencl_shim_control");
  }
  ~LosingDriver() {
    if (cuda_ != nullptr) cuda_->lost = 0;
    if (vulkan_ != nullptr) {
      *vulkan_ = {};
      vulkan_->submissions_until_lost = vulkan_->allocations_until_full = -1;
      control<ShimControl>(dlopen(library_.c_str(), RTLD_NOW), "shim_control");  // finds the real loader again
    }
    if (opencl_ != nullptr) *opencl_ = {};
  }
  LosingDriver(const LosingDriver&) = delete;
  LosingDriver& operator=(const LosingDriver&) = delete;

  bool is_there() const { return cuda_ != nullptr || vulkan_ != nullptr || opencl_ != nullptr; }
  Settings settings() const { return cuda_ != nullptr ? Settings() : Settings{{"library", library_}}; }
  // The next command of the device returns that it is lost.
  void lose() const {
    if (cuda_ != nullptr) cuda_->lost = 719;  // CUDA_ERROR_LAUNCH_FAILED
    if (vulkan_ != nullptr) vulkan_->submissions_until_lost = 0;
    if (opencl_ != nullptr) opencl_->lost = 1;
  }
  // The driver returns the loss when it loads a kernel. Returns false if that cannot be requested.
  bool lose_at_load() const {
    if (vulkan_ != nullptr) vulkan_->pipelines_result = -4;  // VK_ERROR_DEVICE_LOST
    if (opencl_ != nullptr) opencl_->load_lost = 1;
    return cuda_ == nullptr;
  }

 private:
  template <class Control>
  static Control* control(void* driver, const char* name) {
    auto* find = driver == nullptr ? nullptr : reinterpret_cast<Control* (*)()>(dlsym(driver, name));
    return find == nullptr ? nullptr : find();
  }

  std::string library_;
  fakes::cuda::Control* cuda_ = nullptr;
  ShimControl* vulkan_ = nullptr;
  OpenclShimControl* opencl_ = nullptr;
};

// The device is lost while the helper compiles, and a command tells the provider. The code is not loaded, and nothing
// of the module is left.
TEST_F(GpuHelpers, AnswerForADeviceThatIsLostMeanwhile) {
  const LosingDriver driver;
  if (!driver.is_there()) GTEST_SKIP() << "no driver that can be told to lose its device";
  const FakeHelper fake("time.sleep(0.5); answer(0, b'', b'code')");
  settings = driver.settings();
  GpuModules::SetUp();
  ep_memory* memory = allocate(4);
  const int64_t held = provider->host.held();
  std::thread loses([&] {
    usleep(200'000);
    driver.lose();
    if (provider_name() == "cuda") return;  // on cuda all calls fail
    const float number = 1;
    ep_error* error = nullptr;
    const ep_buffer buffer{memory, 0};
    ep_status status = provider->ops.upload(provider->stream, buffer, &number, 4, &error);
    if (status == EP_STATUS_OK) status = provider->ops.stream_synchronize(provider->stream, &error);
    EXPECT_EQ(status, EP_STATUS_DEVICE_LOST);
  });
  Module module(*provider);
  const ep_status status = create(module, 1, 1);
  loses.join();
  EXPECT_EQ(status, EP_STATUS_DEVICE_LOST) << provider->host.sentence();
  EXPECT_LE(provider->host.held(), held);
  Module later(*provider);
  EXPECT_EQ(create(later, 1, 1), EP_STATUS_DEVICE_LOST) << provider->host.sentence();
  provider->ops.memory_free(provider->device, memory);
  provider.reset();
}

// The driver reports the loss when it gets the code; this call and all later ones fail.
TEST_F(GpuHelpers, LeaveALostDeviceToTheDriverThatLoads) {
  const LosingDriver driver;
  if (!driver.is_there()) GTEST_SKIP() << "no driver that can be told to lose its device";
  settings = driver.settings();
  GpuModules::SetUp();
  if (IsSkipped()) return;
  if (!driver.lose_at_load()) GTEST_SKIP() << "the fake driver loses its device in every call";
  const int64_t held = provider->host.held();
  Module module(*provider);
  EXPECT_EQ(create(module, 1, 1), EP_STATUS_DEVICE_LOST) << provider->host.sentence();
  EXPECT_EQ(provider->host.held(), held);
  Module later(*provider);
  EXPECT_EQ(create(later, 2, 1), EP_STATUS_DEVICE_LOST) << provider->host.sentence();
  provider.reset();
}

TEST_F(GpuHelpers, ThatFailAreNoFaultOfTheText) {
  std::string sentence = said("os._exit(3)", EP_STATUS_UNSUPPORTED);
  EXPECT_NE(sentence.find("helper ended while it compiled"), std::string::npos) << sentence;
  sentence = said("answer(2, b'No space left on device')", EP_STATUS_UNSUPPORTED);
  EXPECT_NE(sentence.find("No space left"), std::string::npos) << sentence;
  if (provider_name() == "cuda") return;  // the fake driver loads anything
  sentence = said("answer(0, b'', b'junk')", EP_STATUS_UNSUPPORTED);
  const bool opencl = provider_name() == "opencl";
  EXPECT_NE(sentence.find(opencl ? "for the compiled binary of the module 'test'" : "not valid SPIR-V"),
            std::string::npos)
      << sentence;
  if (opencl) return;
  sentence =
      said("answer(0, b'', struct.pack('<IIIIII', 0x07230203, 0x10500, 0, 1, 0, 99 << 16))", EP_STATUS_UNSUPPORTED);
  EXPECT_NE(sentence.find("not valid SPIR-V"), std::string::npos) << sentence;
}

TEST_F(GpuHelpers, ThatAreNotThereSaySoAndNothingElseFails) {
  std::string sentence;
  {
    const FakeHelper fake("pass");
    fs::remove_all(fmt::format("{}/libexec", fake.folder().path()));
    provider = std::make_unique<OpenProvider>(provider_name());
  }
  Module module(*provider);
  info.dialect = provider_name() == "cuda"     ? EP_DIALECT_CUDA_C
                 : provider_name() == "opencl" ? EP_DIALECT_OPENCL_C
                                               : EP_DIALECT_GLSL;
  EXPECT_EQ(create(module, 1, 1), EP_STATUS_UNSUPPORTED);
  EXPECT_NE(provider->host.sentence().find(fmt::format("{} is not installed", helper_name())), std::string::npos)
      << provider->host.sentence();
  OpenProvider none(provider_name(), {{"compiler", "none"}});
  ep_error* error = nullptr;
  info.struct_size = sizeof info;
  info.struct_type = EP_STRUCT_DIALECT_INFO;
  EXPECT_EQ(none.ops.dialect_info(none.device, 0, &info, &error), EP_STATUS_NOT_FOUND);
  OpenProvider nonsense(provider_name(), {{"compiler", "gcc"}});
  EXPECT_EQ(nonsense.ops.dialect_info(nonsense.device, 0, &info, &error), EP_STATUS_NOT_FOUND);
  EXPECT_NE(nonsense.host.sentence().find("'gcc'"), std::string::npos) << nonsense.host.sentence();
}

}  // namespace
}  // namespace tenon::provider
