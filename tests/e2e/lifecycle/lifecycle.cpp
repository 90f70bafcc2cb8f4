// Loading, retiring, exit and fork, as a program sees them. See README.md.
#include <dlfcn.h>
#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "core/compile/compile.h"
#include "core/ops/ops.h"
#include "core/tensor/device.h"
#include "core/tensor/stream.h"
#include "core/tensor/tensor.h"
#include "loader/loader.h"
#include "primitives/status/error.h"

namespace {

std::atomic<bool> out_of_threads{false};
std::atomic<int> refused_threads{0};

// True if a provider starts this thread by std::thread, like the threads that play a device's queues: the class of the
// thread's function is then in the library that calls.
bool is_of_provider(void* data) {
  Dl_info library{};
  return data != nullptr && dladdr(*static_cast<void**>(data), &library) != 0 && library.dli_fname != nullptr &&
         std::strstr(library.dli_fname, "libtenon_async") != nullptr;
}

using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);

}  // namespace

// A function of the sanitizers, which keep a list of all threads. Null in a build without them.
extern "C" __attribute__((weak)) Create __interceptor_pthread_create;

// Replaces libc's function for all libraries of the process.
extern "C" __attribute__((visibility("default"))) int pthread_create(pthread_t* thread,
                                                                     const pthread_attr_t* attributes,
                                                                     void* (*run)(void*), void* data) {
  if (out_of_threads && !is_of_provider(data)) {
    ++refused_threads;
    return EAGAIN;
  }
  static Create* const create = &__interceptor_pthread_create != nullptr
                                    ? &__interceptor_pthread_create
                                    : reinterpret_cast<Create*>(dlsym(RTLD_NEXT, "pthread_create"));
  return create(thread, attributes, run, data);
}

namespace {

using tenon::Device;
using tenon::Tensor;

constexpr int times = 100;
constexpr int side = 16;

void require(bool holds, const std::string& what) {
  if (!holds) throw std::runtime_error(what);
}

// The code of the error that `call` throws; ok if it throws nothing.
template <class Call>
tenon::Code code_of(Call call) {
  try {
    call();
    return tenon::Code::ok;
  } catch (const tenon::Error& error) {
    return error.code();
  }
}

std::vector<float> ramp(float from) {
  std::vector<float> values(side * side);
  for (size_t i = 0; i < values.size(); ++i) values[i] = from + static_cast<float>(i % 7) - 3;
  return values;
}

// Computes (relu(a) + b) squared on `device` and compares it with loops on the host.
void use(Device device, float from) {
  const std::vector<float> x = ramp(from), y = ramp(from + 1);
  const Tensor a = Tensor::from<float>(x, {side, side}, device), b = Tensor::from<float>(y, {side, side}, device);
  const Tensor sum = tenon::add(tenon::relu(a), b);
  const std::vector<float> sums = sum.to_host<float>(), squares = tenon::mul(sum, sum).to_host<float>();
  for (size_t i = 0; i < x.size(); ++i) {
    const float wanted = (x[i] > 0 ? x[i] : 0) + y[i];
    require(sums[i] == wanted && squares[i] == wanted * wanted, "a wrong number on " + device.spelling());
  }
}

bool is_mapped(const std::string& path) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    if (line.find(path) != std::string::npos) return true;
  }
  return false;
}

std::string path_of(const std::string& provider) {
  for (const tenon::loader::Candidate& candidate : tenon::loader::explain(tenon::loader::Stage::found)) {
    if (candidate.provider == provider) return candidate.path;
  }
  return {};
}

void reload(const std::string& provider) {
  const std::string path = path_of(provider);
  Device old;
  for (int i = 0; i < times; ++i) {
    const Device device(provider);
    require(!old || !(old == device), "a retired device was given out again");
    require(!old || code_of([&] { use(old, 1); }) == tenon::Code::cancelled, "a retired device still works");
    use(device, static_cast<float>(i));
    if (!device.synchronous()) {
      const tenon::Stream stream(device);
      const tenon::StreamScope scope(stream);
      use(device, 2);
    }
    tenon::retire(provider);
    require(tenon::loader::provider_host_memory(provider).bytes == 0, "host memory is left");
    require(path.empty() || is_mapped(path), "the mapping is gone");
    old = device;
  }
  require(code_of([&] { tenon::retire(provider); }) == tenon::Code::not_found, "what is not loaded was retired");
  use(Device(provider), 3);
}

void busy(const std::string& provider) {
  const Device device(provider);
  {
    const Tensor held = Tensor::from<float>(ramp(1), {side, side}, device);
    const Tensor work = tenon::relu(held);
    require(code_of([&] { tenon::retire(provider); }) == tenon::Code::busy, "retired under a tensor");
    use(device, 1);
    require(work.to_host<float>().size() == side * side, "the tensor is gone");
  }
  tenon::retire(provider);
  use(Device(provider), 1);
}

void threads(const std::string& provider) {
  std::vector<std::thread> all;
  std::atomic<int> failed{0};
  for (int number = 0; number < 4; ++number) {
    all.emplace_back([&, number] {
      try {
        const Device device(provider);
        for (int i = 0; i < 50; ++i) use(device, static_cast<float>(number * 100 + i));
        if (device.synchronous() || number > 2) return;
        const tenon::Stream stream(device);
        const tenon::StreamScope scope(stream);
        for (int i = 0; i < 50; ++i) use(device, static_cast<float>(number * 100 + i));
      } catch (const std::exception& error) {
        std::fprintf(stderr, "%s\n", error.what());
        ++failed;
      }
    });
  }
  for (std::thread& one : all) one.join();
  require(failed == 0, "a thread failed");
  tenon::retire(provider);
  use(Device(provider), 1);
}

// Work that nobody waits for.
Tensor start(Device device) {
  Tensor value = Tensor::from<float>(ramp(1), {side, side}, device);
  for (int i = 0; i < 100; ++i) value = tenon::relu(value);
  return value;
}

void exit_in_flight(const std::string& provider) {
  static std::vector<Tensor> kept;
  const Device device(provider);
  for (int i = 0; i < 5; ++i) kept.push_back(start(device));
  std::thread([device] {
    try {
      for (;;) start(device);
    } catch (const tenon::Error&) {
    }
  }).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
}

void fork_in_flight(const std::string& provider) {
  const Device device(provider);
  std::vector<Tensor> kept;
  for (int i = 0; i < 5; ++i) kept.push_back(start(device));
  const pid_t child = fork();
  if (child == 0) {
    const bool refused = code_of([&] { start(device); }) != tenon::Code::ok &&
                         code_of([&] { kept[0].to_host<float>(); }) != tenon::Code::ok &&
                         code_of([&] { tenon::retire(provider); }) != tenon::Code::ok;
    kept.clear();
    _exit(refused ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  require(WIFEXITED(status) && WEXITSTATUS(status) == 0, "the child was served, or died");
  for (const Tensor& one : kept) require(one.to_host<float>().size() == side * side, "the parent's tensor is gone");
  use(device, 5);
}

// The device is opened before, because a provider may need threads to open it. Other providers are not loaded: PoCL
// ends the process if it cannot start a thread.
void no_threads(const std::string& provider) {
  setenv("TENON_PROVIDERS", "cpu,async", 1);
  const Device device(provider);
  const tenon::Stream stream(device);
  out_of_threads = true;
  use(device, 1);
  {
    const tenon::StreamScope scope(stream);
    use(device, 2);
  }
  {
    constexpr int64_t large =
        int64_t{1} << 18;  // its memory goes to the allocator's cache, for the housekeeping thread
    const Tensor zeros = tenon::zeros({large}, tenon::DType::f32, device);
    require(tenon::sum(tenon::add(zeros, 1.0F)).to_host<float>()[0] == static_cast<float>(large), "a wrong sum");
  }
  const Tensor value = Tensor::from<float>(ramp(1), {side, side}, device);
  float seen = 0;
  value.access(tenon::Access::read_write, [&](void* data) { seen = static_cast<const float*>(data)[0]; });
  value.wait();
  require(seen == ramp(1)[0], "the function of an access did not run");
  auto step = tenon::compile([](const Tensor& x) { return tenon::exp(tenon::relu(tenon::neg(x))); });
  for (int i = 0; i < 3; ++i) require(step(value).to_host<float>()[3] == 1.0F, "a wrong number of a compiled function");
  require(refused_threads > 0, "no thread was asked for");
}

struct Mode {
  const char* name;
  void (*run)(const std::string& provider);
};
constexpr Mode modes[] = {{"reload", reload},       {"busy", busy},           {"threads", threads},
                          {"exit", exit_in_flight}, {"fork", fork_in_flight}, {"no_threads", no_threads}};

}  // namespace

int main(int argc, char** argv) {
  const std::string provider = argc > 2 ? argv[2] : "cpu";
  try {
    for (const Mode& mode : modes) {
      if (argc < 2 || std::strcmp(argv[1], mode.name) != 0) continue;
      mode.run(provider);
      return 0;
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s %s: %s\n", argv[1], provider.c_str(), error.what());
    return 1;
  }
  std::fprintf(stderr, "usage: lifecycle reload|busy|threads|exit|fork|no_threads [PROVIDER]\n");
  return 2;
}
