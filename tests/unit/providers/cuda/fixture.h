// The cuda provider on the fake driver, which the test controls.
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

// False if CUDA_TESTS_ON_DEVICE is set: a test that needs no fake then runs on a GPU.
bool on_fake();
// Returns the control of the fake driver in this process. Ends the test program if the driver is not the fake. On a GPU
// it returns a control without effect.
fakes::cuda::Control& fake();
// The number of contexts on the calling thread's stack; 0 on a GPU.
size_t contexts_of_this_thread();

// Opens device 0. The destructor closes it, and checks that nothing is left and that the fake saw no misuse.
class FakeCuda : public ::testing::Test {
 protected:
  void SetUp() override;
  void TearDown() override;

  // A block of device memory that lives until the test ends.
  ep_memory* block(uint64_t bytes);
  // put uploads; get downloads and waits.
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

  // Creates a primitive, which lives until the test ends, and launches it.
  ep_status launch(const ep_primitive_desc& desc, const std::vector<ep_memory*>& operands,
                   const std::vector<ep_scalar>& scalars = {}, uint64_t tag = 0);
  std::string implementation_of(const ep_primitive_desc& desc);
  // The implementation of the last launched primitive.
  const std::string& made_by() const { return made_by_; }

  OpenProvider& cuda() { return *provider_; }
  void close();

  std::unique_ptr<OpenProvider> provider_;

 private:
  void read(ep_memory* memory, void* bytes, uint64_t size);

  std::vector<ep_memory*> blocks_;
  std::vector<ep_event*> events_;
  std::vector<ep_primitive*> primitives_;
  std::string made_by_;
};

// Uniform in [-2, 2], never 0.
std::vector<float> random_floats(size_t count, uint32_t seed = 1);

}  // namespace tenon::provider::cuda
