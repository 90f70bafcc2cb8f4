// Wires: messages between the ranks of one communicator of the fake NCCL. A message is a file in a folder of this
// machine. Messages from one rank to another arrive in order.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <vector>

namespace tenon::fakes {

class Wires {
 public:
  // `folder` is the same on all ranks; any rank may come first. `says` is a text that this rank gives to all others.
  Wires(std::string folder, int rank, int size, const std::string& says);

  int rank() const { return rank_; }
  int size() const { return size_; }
  // Returns the texts of all ranks, or nothing while a rank is missing.
  std::vector<std::string> all_said() const;
  // Never waits.
  void send(int to, const std::string& bytes);
  // Waits for the next message of rank `from`. Returns false if `stop` is set, or if that rank has left and sent
  // nothing more.
  bool receive(int from, std::string* bytes, const std::atomic<bool>& stop);
  // Says that this rank sends nothing more. The last rank removes the folder.
  void leave();

 private:
  std::string file(const char* kind, int from) const;
  std::string message(int from, int to, uint64_t number) const;

  const std::string folder_;
  const int rank_, size_;
  std::vector<uint64_t> sent_, received_;  // number of messages so far, by rank
};

}  // namespace tenon::fakes
