#include "tests/fakes/pipes/wires.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
#include <algorithm>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>
#include <utility>

#include "primitives/text/format.h"

namespace tenon::fakes {
namespace {

using Clock = std::chrono::steady_clock;

struct Header {
  uint64_t communicator, number, bytes;
};

sockaddr_un address_of(const std::string& folder, int32_t rank) {
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = fmt::format("{}/{}", folder, rank);
  path.copy(address.sun_path, sizeof address.sun_path - 1);
  return address;
}

bool is_whole(int socket, void* bytes, size_t size, bool out) {
  auto* at = static_cast<char*>(bytes);
  while (size > 0) {
    const ssize_t moved = out ? ::send(socket, at, size, MSG_NOSIGNAL) : ::recv(socket, at, size, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return false;
    at += moved;
    size -= static_cast<size_t>(moved);
  }
  return true;
}

}  // namespace

// Each rank listens, connects to the ranks below it, and accepts connections of the ranks above it.
std::string Wires::connect(const std::string& folder, int32_t rank, int32_t size) {
  rank_ = rank;
  size_ = size;
  if (size == 1) return {};
  peers_ = std::vector<Peer>(static_cast<size_t>(size));
  const int listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const sockaddr_un own = address_of(folder, rank);
  const auto* address = reinterpret_cast<const sockaddr*>(&own);
  if (listener < 0 || bind(listener, address, sizeof own) != 0 || listen(listener, size) != 0) {
    if (listener >= 0) ::close(listener);
    return fmt::format("there is no socket in the folder: {}", std::strerror(errno));
  }
  const auto limit = Clock::now() + std::chrono::seconds(60);
  std::string failure;
  for (int32_t other = 0; other < rank && failure.empty(); ++other) {
    const int wire = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    const sockaddr_un theirs = address_of(folder, other);
    while (::connect(wire, reinterpret_cast<const sockaddr*>(&theirs), sizeof theirs) != 0) {
      if (Clock::now() > limit) failure = fmt::format("rank {} does not come", other);
      if (!failure.empty()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    int32_t said = rank;
    if (failure.empty() && !is_whole(wire, &said, sizeof said, true)) failure = "a rank has gone";
    peers_[static_cast<size_t>(other)].socket = wire;
  }
  for (int32_t more = rank + 1; more < size && failure.empty(); ++more) {
    pollfd asked{listener, POLLIN, 0};
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(limit - Clock::now()).count();
    if (left <= 0 || poll(&asked, 1, static_cast<int>(left)) <= 0) {
      failure = "not all ranks come";
      break;
    }
    const int wire = accept4(listener, nullptr, nullptr, SOCK_CLOEXEC);
    int32_t theirs = 0;
    if (!is_whole(wire, &theirs, sizeof theirs, false) || theirs <= rank || theirs >= size)
      failure = "a stranger calls";
    if (failure.empty()) peers_[static_cast<size_t>(theirs)].socket = wire;
    if (!failure.empty()) ::close(wire);
  }
  ::close(listener);
  for (const Peer& peer : peers_) {
    if (peer.socket >= 0) fcntl(peer.socket, F_SETFL, O_NONBLOCK);
  }
  return failure;
}

void Wires::close() {
  const auto limit = Clock::now() + std::chrono::seconds(5);
  for (Peer& peer : peers_) {
    while (peer.socket >= 0 && !peer.lost && !peer.out.empty() && Clock::now() < limit) progress(1);
  }
  for (Peer& peer : peers_) {
    if (peer.socket >= 0) ::close(std::exchange(peer.socket, -1));
  }
}

void Wires::send(int32_t to, uint64_t communicator, uint64_t number, std::string bytes) {
  Peer& peer = peers_[static_cast<size_t>(to)];
  const Header header{communicator, number, bytes.size()};
  peer.out.append(reinterpret_cast<const char*>(&header), sizeof header);
  peer.out += bytes;
  write(peer);
}

bool Wires::take(int32_t from, uint64_t communicator, uint64_t number, std::string* bytes) {
  const auto found = come_.find({from, communicator, number});
  if (found == come_.end()) return false;
  std::deque<std::string>& waiting = found->second;
  *bytes = std::move(waiting.front());
  waiting.pop_front();
  if (waiting.empty()) come_.erase(found);
  return true;
}

bool Wires::has_unsent() const {
  return std::any_of(peers_.begin(), peers_.end(), [](const Peer& peer) { return !peer.lost && !peer.out.empty(); });
}

void Wires::progress(int wait_ms) {
  std::vector<pollfd> asked;
  std::vector<int32_t> ranks;
  for (int32_t rank = 0; rank < static_cast<int32_t>(peers_.size()); ++rank) {
    Peer& peer = peers_[static_cast<size_t>(rank)];
    if (peer.socket < 0 || peer.lost) continue;
    const auto events = static_cast<short>(POLLIN | (peer.out.empty() ? 0 : POLLOUT));
    asked.push_back({peer.socket, events, 0});
    ranks.push_back(rank);
  }
  if (poll(asked.data(), asked.size(), wait_ms) <= 0) return;
  for (size_t i = 0; i < asked.size(); ++i) {
    if ((asked[i].revents & POLLOUT) != 0) write(peers_[static_cast<size_t>(ranks[i])]);
    if ((asked[i].revents & (POLLIN | POLLHUP | POLLERR)) != 0) read(ranks[i]);
  }
}

void Wires::write(Peer& peer) {
  while (!peer.out.empty() && !peer.lost) {
    const ssize_t moved = ::send(peer.socket, peer.out.data(), peer.out.size(), MSG_NOSIGNAL);
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return;  // no room, or a rank that is gone, which read() detects
    peer.out.erase(0, static_cast<size_t>(moved));
  }
}

void Wires::read(int32_t rank) {
  Peer& peer = peers_[static_cast<size_t>(rank)];
  char bytes[65536];
  while (true) {
    const ssize_t moved = recv(peer.socket, bytes, sizeof bytes, 0);
    if (moved < 0 && errno == EINTR) continue;
    if (moved < 0 && errno == EAGAIN) break;
    if (moved <= 0) {
      peer.lost = true;
      break;
    }
    peer.in.append(bytes, static_cast<size_t>(moved));
  }
  size_t at = 0;
  while (peer.in.size() - at >= sizeof(Header)) {
    Header header{};
    std::memcpy(&header, peer.in.data() + at, sizeof header);
    if (peer.in.size() - at - sizeof header < header.bytes) break;
    come_[{rank, header.communicator, header.number}].push_back(peer.in.substr(at + sizeof header, header.bytes));
    at += sizeof header + header.bytes;
  }
  peer.in.erase(0, at);
}

}  // namespace tenon::fakes
