#include "tests/fakes/cuda/stream.h"

#include <chrono>
#include <cstring>

#include "tests/fakes/cuda/fake.h"

CUstream_st::CUstream_st(int of_device)
    : device(of_device), random_(reinterpret_cast<uintptr_t>(this)), thread_([this] { run(); }) {}

CUstream_st::~CUstream_st() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    changed_.notify_all();
  }
  thread_.join();
}

void CUstream_st::push(std::function<void()> work) {
  if (captured_ != nullptr) return captured_->push_back(std::move(work));
  const std::lock_guard lock(mutex_);
  queue_.push_back(std::move(work));
  changed_.notify_all();
}

void CUstream_st::drain() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return queue_.empty() && !running_; });
}

void CUstream_st::run() {
  static std::atomic<int> busy{0};
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::function<void()> work = std::move(queue_.front());
    queue_.pop_front();
    running_ = true;
    lock.unlock();
    const int longest = tenon::fakes::cuda::control().delay_us.load(std::memory_order_relaxed);
    if (longest > 0) {
      random_ = random_ * 6364136223846793005U + 1442695040888963407U;
      if ((random_ >> 61) == 0) {
        std::this_thread::sleep_for(std::chrono::microseconds((random_ >> 33) % static_cast<uint64_t>(longest)));
      }
    }
    if (busy.fetch_add(1) != 0) tenon::fakes::cuda::control().overlaps.fetch_add(1);
    work();
    busy.fetch_sub(1);
    lock.lock();
    running_ = false;
    if (queue_.empty()) changed_.notify_all();
  }
}

CUresult tenon::fakes::cuda::enqueue_copy(CUstream stream, uint64_t dst, uint64_t src, size_t size) {
  stream->push([=] { std::memcpy(reinterpret_cast<void*>(dst), reinterpret_cast<const void*>(src), size); });
  return CUDA_SUCCESS;
}
