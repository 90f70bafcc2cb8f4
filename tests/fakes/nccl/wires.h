// Wires: messages between the ranks of one communicator of the fake NCCL. A message is a file in a folder of this
// machine; those from one rank to another come in their order.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::fakes {

class Wires {
 public:
  // `folder` is the same on all ranks; rank 0 need not be the first. `says` is what this rank says of itself.
  Wires(std::string folder, int rank, int size, const std::string& says);

  int rank() const { return rank_; }
  int size() const { return size_; }
  // What all ranks say of themselves; empty while one has not come.
  std::vector<std::string> all_said() const;
  // Never waits.
  void send(int to, const std::string& bytes);
  // Waits for the next message of rank `from`. False: `stop` is set, or that rank has left and sent nothing more.
  bool receive(int from, std::string* bytes, const std::atomic<bool>& stop);
  // This rank sends nothing more. The last one removes the folder.
  void leave();

 private:
  std::string file(const char* kind, int from) const;
  std::string message(int from, int to, uint64_t number) const;

  const std::string folder_;
  const int rank_, size_;
  std::vector<uint64_t> sent_, received_;  // messages so far, by rank
};

}  // namespace tenon::fakes
