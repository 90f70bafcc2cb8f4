#include "tests/fakes/async/foreign.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <utility>

namespace tenon::fakes {

Foreign Foreign::create(uint64_t size) {
  Foreign foreign;
  foreign.fd_ = memfd_create("foreign", MFD_CLOEXEC);
  if (foreign.fd_ != -1 && ftruncate(foreign.fd_, static_cast<off_t>(size)) == 0) foreign.map(size);
  return foreign;
}

Foreign Foreign::open(int fd, uint64_t size) {
  Foreign foreign;
  struct stat facts {};
  if (fstat(fd, &facts) != 0 || static_cast<uint64_t>(facts.st_size) < size) return foreign;
  foreign.fd_ = fcntl(fd, F_DUPFD_CLOEXEC, 0);
  if (foreign.fd_ != -1) foreign.map(size);
  return foreign;
}

void Foreign::map(uint64_t size) {
  void* data = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (data == MAP_FAILED) return;
  data_ = static_cast<char*>(data);
  size_ = size;
}

Foreign::~Foreign() {
  if (data_ != nullptr) munmap(data_, size_);
  if (fd_ != -1) close(fd_);
}

Foreign::Foreign(Foreign&& other) noexcept { *this = std::move(other); }

Foreign& Foreign::operator=(Foreign&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace tenon::fakes
