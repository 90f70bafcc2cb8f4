// The cuda provider on the fake driver, which the test steers.
#pragma once

#include <cuda.h>
#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "tests/fakes/cuda/control.h"
#include "tests/unit/providers/provider_fixture.h"

namespace tenon::provider::cuda {

// False where a test that needs no fake runs on a GPU: the environment says CUDA_TESTS_ON_DEVICE.
bool on_fake();
// The control of the fake driver that this process loads; fails the test program if the driver is no fake. On a device
// one that nobody reads.
fakes::cuda::Control& fake();
// How many contexts the calling thread has current; 0 on a device.
size_t contexts_of_this_thread();

// Opens device 0. At the end it is closed, and the fake must have nothing left and seen no misuse.
class FakeCuda : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A block of device memory that is freed with the test.
  ep_memory* block(uint64_t bytes);
  // Uploads, or downloads and waits.
  void put(ep_memory* memory, const void* bytes, uint64_t size);
  template <class T>
  ep_memory* with(const std::vector<T>& values) {
    ep_memory* memory = block(values.size() * sizeof(T));
    put(memory, values.data(), values.size() * sizeof(T));
    return memory;
  }
  template <class T>
  std::vector<T> get(ep_memory* memory, size_t count) {
    std::vector<T> values(count);
    read(memory, values.data(), count * sizeof(T));
    return values;
  }
  ep_event* event();
  void wait(ep_event* recorded);

  // Creates and launches; the primitive lives until the test ends.
  ep_status launch(const ep_primitive_desc& desc, const std::vector<ep_memory*>& operands,
                   const std::vector<ep_scalar>& scalars = {}, uint64_t tag = 0);
  std::string implementation_of(const ep_primitive_desc& desc);

  OpenProvider& cuda() { return *provider_; }
  void close();

  std::unique_ptr<OpenProvider> provider_;

 private:
  void read(ep_memory* memory, void* bytes, uint64_t size);

  std::vector<ep_memory*> blocks_;
  std::vector<ep_event*> events_;
  std::vector<ep_primitive*> primitives_;
};

// Uniform in [-2, 2], never 0.
std::vector<float> random_floats(size_t count, uint32_t seed = 1);

}  // namespace tenon::provider::cuda
