#include "providers/cpu/threads/team.h"

#include <pthread.h>

#include <algorithm>
#include <mutex>
#include <new>
#include <system_error>
#include <thread>
#include <utility>

#include "sdk/provider/floating_point.h"

namespace tenon::provider::cpu {
namespace {

std::mutex idle_mutex;
Team* idle = nullptr;  // a list

}  // namespace

struct Team::Place {
  Team* team = nullptr;  // NULL: the thread is in no region of several threads
  int32_t number = 0;
  int32_t nested = 0;  // regions of one thread within the region
};

thread_local Team::Place Team::place;

int32_t Team::number() { return place.nested > 0 ? 0 : place.number; }
int32_t Team::width() { return place.team == nullptr || place.nested > 0 ? 1 : place.team->width_; }
bool Team::is_inside() { return place.team != nullptr; }

void Team::barrier() {
  if (width() == 1) return;
  Team& team = *place.team;
  const uint32_t seen = team.barrier_.value();
  if (team.arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 < team.width_) return team.barrier_.wait(seen);
  team.arrived_.store(0, std::memory_order_relaxed);
  team.barrier_.raise();
}

void Team::run(Body body, void* data, int32_t width) {
  Team* team = width > 1 && place.team == nullptr ? take() : nullptr;
  const Place before = place;
  if (team == nullptr) {
    ++place.nested;
    body(data);
  } else {
    team->lead(body, data, width);
    give_back(team);
  }
  place = before;
}

void Team::lead(Body body, void* data, int32_t width) {
  hire(width);
  body_ = body;
  data_ = data;
  width_ = std::min(width, workers_ + 1);
  running_.store(workers_, std::memory_order_relaxed);
  const uint32_t seen = end_.value();
  begin_.raise();
  place = {this, 0, 0};
  body(data);
  if (workers_ > 0) end_.wait(seen);
}

void Team::hire(int32_t width) {
  while (workers_ + 1 < width) {
    const uint32_t seen = begin_.value();
    try {
      std::thread([this, number = workers_ + 1, seen] { work(number, seen); }).detach();
    } catch (const std::system_error&) {
      return;
    }
    ++workers_;
  }
}

// The life of a worker. Every worker takes part in counting the end of a region, also one that the region does not
// need.
void Team::work(int32_t number, uint32_t seen) {
  const provider::DefaultFloatingPoint floating_point;  // a thread inherits the state of the one that starts it
  for (;;) {
    begin_.wait(seen);
    seen = begin_.value();
    if (number < width_) {
      place = {this, number, 0};
      body_(data_);
      place = {};
    }
    if (running_.fetch_sub(1, std::memory_order_acq_rel) == 1) end_.raise();
  }
}

// NULL: there is no memory for a further team.
Team* Team::take() {
  // The workers of a forked process are gone, so its child begins without teams.
  static const int registered = pthread_atfork([] { idle_mutex.lock(); }, [] { idle_mutex.unlock(); },
                                               [] {
                                                 idle = nullptr;
                                                 idle_mutex.unlock();
                                               });
  static_cast<void>(registered);
  {
    const std::lock_guard lock(idle_mutex);
    if (idle != nullptr) return std::exchange(idle, idle->next_);
  }
  return new (std::nothrow) Team;
}

void Team::give_back(Team* team) {
  const std::lock_guard lock(idle_mutex);
  team->next_ = std::exchange(idle, team);
}

}  // namespace tenon::provider::cpu
