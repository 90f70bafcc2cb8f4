// Transfers of any number of bytes on a device that transfers only whole multiples, with and without failures in the
// middle.
#include "core/vm/granular.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <random>
#include <vector>

namespace tenon::vm {
namespace {

// A device whose work runs when the stream is synchronised. Call number `fails` returns an error.
struct Deferred {
  std::vector<std::function<void()>> pending;
  uint64_t unit = 1;
  int fails = -1;
  int calls = 0;
  bool odd = false;  // true if a call was not for whole multiples of `unit`

  bool refuses() { return calls++ == fails; }
  ep_status submit(std::initializer_list<uint64_t> numbers, std::function<void()> work) {
    for (const uint64_t number : numbers) odd = odd || number % unit != 0;
    if (refuses()) return EP_STATUS_INTERNAL;
    pending.push_back(std::move(work));
    return EP_STATUS_OK;
  }
  void run() {
    for (const auto& work : pending) work();
    pending.clear();
  }
};

using Bytes = std::vector<char>;

Deferred& of(ep_stream* stream) { return *reinterpret_cast<Deferred*>(stream); }
char* at(ep_buffer buffer) { return reinterpret_cast<Bytes*>(buffer.memory)->data() + buffer.offset; }
ep_buffer in(Bytes& bytes, uint64_t offset) { return {reinterpret_cast<ep_memory*>(&bytes), offset}; }

DeviceState& device() {
  static DeviceState one;
  one.ops.copy = [](ep_stream* stream, ep_buffer dst, ep_buffer src, uint64_t size, ep_error**) {
    return of(stream).submit({dst.offset, src.offset, size}, [=] { std::memcpy(at(dst), at(src), size); });
  };
  one.ops.upload = [](ep_stream* stream, ep_buffer dst, const void* src, uint64_t size, ep_error**) {
    return of(stream).submit({dst.offset, size}, [=] { std::memcpy(at(dst), src, size); });
  };
  one.ops.download = [](ep_stream* stream, void* dst, ep_buffer src, uint64_t size, ep_error**) {
    return of(stream).submit({src.offset, size}, [=] { std::memcpy(dst, at(src), size); });
  };
  one.ops.stream_synchronize = [](ep_stream* stream, ep_error** error) {
    if (error != nullptr && of(stream).refuses()) return EP_STATUS_INTERNAL;
    of(stream).run();
    return EP_STATUS_OK;
  };
  return one;
}

class Granular : public ::testing::TestWithParam<uint64_t> {
 protected:
  Granular() {
    device().copy_granularity = queue_.unit = GetParam();
    for (Bytes* bytes : {&a_, &b_}) {
      for (char& byte : *bytes) byte = static_cast<char>(random_());
    }
  }

  // Runs `transfer` on a queue in which call number `fails` fails. Returns true if there was no such call.
  bool run(int fails, const std::function<ep_status(ep_stream*, ep_error**)>& transfer) {
    queue_.fails = fails;
    queue_.calls = 0;
    ep_error* error = nullptr;
    const ep_status status = transfer(reinterpret_cast<ep_stream*>(&queue_), &error);
    EXPECT_FALSE(queue_.odd);
    if (status != EP_STATUS_OK) {
      EXPECT_TRUE(queue_.pending.empty()) << "a transfer that failed at call " << fails << " has left work behind";
      queue_.run();
      return false;
    }
    queue_.run();
    return true;
  }

  Bytes a_ = Bytes(512), b_ = Bytes(512);
  Deferred queue_;
  std::mt19937_64 random_{17};
};

INSTANTIATE_TEST_SUITE_P(Units, Granular, ::testing::Values(1, 2, 4, 16, 64));

TEST_P(Granular, MovesExactlyItsBytesAndLeavesNothingBehindWhereItFails) {
  for (int round = 0; round < 300; ++round) {
    const uint64_t size = 1 + random_() % 200, to = random_() % 300, from = random_() % 300;
    Bytes host(size);
    for (char& byte : host) byte = static_cast<char>(random_());
    const std::function<ep_status(ep_stream*, ep_error**)> transfers[] = {
        [&](ep_stream* s, ep_error** e) { return upload_bytes(device(), s, in(a_, to), host.data(), size, e); },
        [&](ep_stream* s, ep_error** e) { return copy_bytes(device(), s, in(b_, to), in(a_, from), size, e); },
        [&](ep_stream* s, ep_error** e) { return download_bytes(device(), s, host.data(), in(b_, from), size, e); }};
    for (int kind = 0; kind < 3; ++kind) {
      Bytes a = a_, b = b_, got = host;
      if (kind == 0) std::copy(host.begin(), host.end(), a.begin() + static_cast<std::ptrdiff_t>(to));
      if (kind == 1)
        std::copy_n(a.begin() + static_cast<std::ptrdiff_t>(from), size, b.begin() + static_cast<std::ptrdiff_t>(to));
      if (kind == 2) std::copy_n(b.begin() + static_cast<std::ptrdiff_t>(from), size, got.begin());
      int fails = 0;
      while (!run(fails, transfers[kind])) ASSERT_LT(++fails, 50);
      ASSERT_EQ(a_, a) << size << " " << to;
      ASSERT_EQ(b_, b) << size << " " << from << " " << to;
      ASSERT_EQ(host, got);
    }
  }
}

}  // namespace
}  // namespace tenon::vm
