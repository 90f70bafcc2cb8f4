// Wires: a socket to each other rank, and the received messages. Only connect() waits.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <tuple>
#include <vector>

namespace tenon::fakes {

class Wires {
 public:
  Wires() = default;
  Wires(const Wires&) = delete;
  Wires& operator=(const Wires&) = delete;
  ~Wires() { close(); }

  // Connects rank `rank` of `size` through sockets in `folder`. Waits for all ranks. Returns an empty string, or the
  // reason of a failure.
  std::string connect(const std::string& folder, int32_t rank, int32_t size);
  // Sends the rest, for at most five seconds, and closes the connections.
  void close();

  int32_t rank() const { return rank_; }
  int32_t size() const { return size_; }

  // Messages between two ranks on one channel arrive in the order in which they were sent. A channel is a communicator
  // and a number: 0 for send and receive, otherwise the number of a collective.
  void send(int32_t to, uint64_t communicator, uint64_t number, std::string bytes);
  // Takes the first received message. Returns false if there is none.
  bool take(int32_t from, uint64_t communicator, uint64_t number, std::string* bytes);
  // True once rank `rank` is gone and all its messages have arrived.
  bool is_lost(int32_t rank) const { return !peers_.empty() && peers_[static_cast<size_t>(rank)].lost; }
  // True if some data given to send() is not sent yet and its receiver still exists.
  bool has_unsent() const;
  // Sends and receives as much as possible. Waits at most `wait_ms` until something is possible.
  void progress(int wait_ms);

 private:
  struct Peer {
    int socket = -1;
    bool lost = false;
    std::string out, in;
  };
  using Channel = std::tuple<int32_t, uint64_t, uint64_t>;

  void read(int32_t rank);
  void write(Peer& peer);

  int32_t rank_ = 0, size_ = 1;
  std::vector<Peer> peers_;
  std::map<Channel, std::deque<std::string>> come_;
};

}  // namespace tenon::fakes
