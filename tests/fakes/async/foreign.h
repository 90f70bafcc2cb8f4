// Foreign: an object of another API that the fake can import: a memory file behind a file descriptor. As memory, its
// bytes are the memory; as a semaphore, its first eight bytes are the counter.
#pragma once

#include <atomic>
#include <cstdint>

namespace tenon::fakes {

// A memory file and its mapping. A test, in the role of the application, makes one with create(); the fake opens it.
class Foreign {
 public:
  // Makes a file of `size` bytes, all zero. fd() is -1 on failure.
  static Foreign create(uint64_t size);
  // Opens the file behind `fd`, which the caller keeps. mapped() is false if the file has fewer than `size` bytes.
  static Foreign open(int fd, uint64_t size);

  Foreign() = default;
  ~Foreign();
  Foreign(Foreign&& other) noexcept;
  Foreign& operator=(Foreign&& other) noexcept;

  int fd() const { return fd_; }
  bool mapped() const { return data_ != nullptr; }
  char* data() const { return data_; }
  uint64_t size() const { return size_; }
  // As a semaphore.
  std::atomic<uint64_t>& counter() const { return *reinterpret_cast<std::atomic<uint64_t>*>(data_); }

 private:
  void map(uint64_t size);

  int fd_ = -1;
  char* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace tenon::fakes
