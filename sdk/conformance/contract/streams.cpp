// Streams: only events order them; destroying unrelated objects does not disturb them; several threads use them at
// once.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <mutex>
#include <string_view>
#include <thread>

#include "primitives/status/start_thread.h"
#include "primitives/text/format.h"
#include "sdk/conformance/contract/contract.h"
#include "sdk/conformance/contract/sample.h"

namespace tenon::conformance {

Status streams_hints(Subject& subject) {
  constexpr uint64_t size = 4096;
  constexpr int32_t unknown_purpose = 77;
  uint64_t seed = 900;
  const std::pair<int32_t, int32_t> hints[] = {{EP_STREAM_COMPUTE, 1'000'000},
                                               {EP_STREAM_COMPUTE, -1'000'000},
                                               {EP_STREAM_COPY, 0},
                                               {EP_STREAM_COPY, 1},
                                               {unknown_purpose, -1}};
  for (const auto& [purpose, priority] : hints) {
    const Result<Stream> made = subject.make_stream(purpose, priority);
    if (!made.ok()) {
      return broken("S09", "stream_create refuses purpose {} and priority {}, which are hints: {}", purpose, priority,
                    without_rule(made.status()).message());
    }
    TENON_ASSIGN_OR_RETURN(const Memory memory, subject.allocate(size));
    const std::vector<uint8_t> sent = random_bytes(size, ++seed);
    std::vector<uint8_t> received(size, 0);
    TENON_RETURN_IF_ERROR(subject.upload(made.value(), memory, 0, sent));
    TENON_RETURN_IF_ERROR(subject.download(made.value(), memory, 0, received));
    TENON_RETURN_IF_ERROR(subject.finish(made.value()));
    if (sent != received) {
      return broken("S09", "a stream of purpose {} and priority {} lost bytes of an upload", purpose, priority);
    }
  }
  return {};
}

// One stream writes, and another reads after an event, in many rounds. The host does not wait between rounds.
Status streams_ordered_by_events(Subject& subject) {
  TENON_ASSIGN_OR_RETURN(const Stream maker, subject.make_stream());
  TENON_ASSIGN_OR_RETURN(const Stream reader, subject.make_stream());
  constexpr uint64_t size = 1 << 18;
  constexpr int rounds = 12;
  TENON_ASSIGN_OR_RETURN(const Memory source, subject.allocate(size));
  TENON_ASSIGN_OR_RETURN(const Memory shared, subject.allocate(size));
  std::vector<Event> made, taken;
  std::vector<std::vector<uint8_t>> sent, received(rounds, std::vector<uint8_t>(size, 0));
  for (uint64_t i = 0; i < rounds; ++i) {
    sent.push_back(random_bytes(size, 200 + i));
    for (std::vector<Event>* events : {&made, &taken}) {
      TENON_ASSIGN_OR_RETURN(Event event, subject.make_event());
      events->push_back(std::move(event));
    }
  }
  const Drain drain_maker(subject, maker), drain_reader(subject, reader);
  const auto wait = [&](const Stream& stream, const Event& event) {
    return subject.call("stream_wait_event", subject.ops.stream_wait_event, stream.get(), event.get());
  };
  for (size_t i = 0; i < rounds; ++i) {
    if (i > 0) TENON_RETURN_IF_ERROR(wait(maker, taken[i - 1]));
    TENON_RETURN_IF_ERROR(subject.upload(maker, source, 0, sent[i]));
    TENON_RETURN_IF_ERROR(subject.copy(maker, shared, 0, source, 0, size));
    TENON_RETURN_IF_ERROR(subject.record_event(made[i], maker));
    TENON_RETURN_IF_ERROR(wait(reader, made[i]));
    TENON_RETURN_IF_ERROR(subject.download(reader, shared, 0, received[i]));
    TENON_RETURN_IF_ERROR(subject.record_event(taken[i], reader));
  }
  TENON_RETURN_IF_ERROR(subject.wait(taken.back()));
  for (size_t i = 0; i < rounds; ++i) {
    if (sent[i] != received[i]) return broken("S05", "in round {} a stream did not wait for the event of another", i);
  }
  return subject.finish(maker);
}

namespace {

// Launches one primitive on two streams alternately, each with its own operands.
Status keep_apart(Subject& subject, const cases::Case& sample) {
  TENON_ASSIGN_OR_RETURN(const ep_primitive_desc desc, accepted_desc(subject, sample));
  TENON_ASSIGN_OR_RETURN(const Stream first, subject.make_stream());
  TENON_ASSIGN_OR_RETURN(const Stream second, subject.make_stream());
  std::vector<std::unique_ptr<Prepared>> all;
  const Drain drain_first(subject, first), drain_second(subject, second);
  for (uint64_t i = 0; i < 12; ++i) {
    all.push_back(std::make_unique<Prepared>(subject, sample, desc, 300 + i));
    all.back()->work.tag = i + 1;
    all.back()->work.dirt = static_cast<uint8_t>(0x11 * (i + 1));
    TENON_RETURN_IF_ERROR(all.back()->work.create());
  }
  for (size_t i = 0; i < all.size(); ++i) TENON_RETURN_IF_ERROR(all[i]->work.submit(i % 2 == 0 ? first : second));
  TENON_RETURN_IF_ERROR(subject.finish(second));
  TENON_RETURN_IF_ERROR(subject.finish(first));
  for (size_t i = 0; i < all.size(); ++i) {
    const Status same = all[i]->compare();
    if (!same.ok())
      return broken("S01", "launch {} of twelve on two streams was disturbed: {}", i, without_rule(same).message());
  }
  return {};
}

// During a launch, destroys a primitive, memory, an event and a stream that the launch does not use.
Status outlive(Subject& subject, const cases::Case& sample) {
  TENON_ASSIGN_OR_RETURN(const ep_primitive_desc desc, accepted_desc(subject, sample));
  TENON_ASSIGN_OR_RETURN(const Stream stream, subject.make_stream());
  Prepared kept(subject, sample, desc, 400);
  const Drain drain(subject, stream);
  auto gone = std::make_unique<Prepared>(subject, sample, desc, 401);
  TENON_RETURN_IF_ERROR(kept.work.create());
  TENON_RETURN_IF_ERROR(gone->work.create());
  TENON_ASSIGN_OR_RETURN(Memory memory, subject.allocate(5000));
  TENON_ASSIGN_OR_RETURN(Stream other, subject.make_stream());
  Event event;
  if (subject.has_events()) {
    TENON_ASSIGN_OR_RETURN(event, subject.make_event());
  }
  TENON_RETURN_IF_ERROR(kept.work.submit(stream));
  gone.reset();
  memory.reset();
  event.reset();
  other.reset();
  TENON_RETURN_IF_ERROR(subject.finish(stream));
  const Status same = kept.compare();
  if (!same.ok())
    return broken("M07", "objects that a launch in flight does not use were destroyed: {}",
                  without_rule(same).message());
  return {};
}

}  // namespace

Status streams_keep_launches_apart(Subject& subject) {
  return for_each_sound_sample(subject, [&](const cases::Case& sample) { return keep_apart(subject, sample); });
}

Status streams_outlive_unrelated(Subject& subject) {
  return for_each_sound_sample(subject, [&](const cases::Case& sample) { return outlive(subject, sample); });
}

namespace {

// The work of one thread, with its own memory, transfers, primitive and events. On a synchronous device the threads
// share the only stream.
Status use(Subject& subject, const Stream& stream, const cases::Case* sample, const ep_primitive_desc* desc,
           uint64_t seed) {
  for (uint64_t round = 0; round < 8; ++round) {
    const uint64_t size = 1000 + 997 * round;
    TENON_ASSIGN_OR_RETURN(const Memory memory, subject.allocate(size));
    const std::vector<uint8_t> sent = random_bytes(size, seed + round);
    std::vector<uint8_t> received(size, 0);
    const Drain drain(subject, stream);
    TENON_RETURN_IF_ERROR(subject.upload(stream, memory, 0, sent));
    TENON_RETURN_IF_ERROR(subject.download(stream, memory, 0, received));
    TENON_RETURN_IF_ERROR(subject.finish(stream));
    if (sent != received) return broken("C01", "on several threads a transfer of {} bytes went wrong", size);
    if (sample == nullptr) continue;
    Prepared prepared(subject, *sample, *desc, seed + round);
    TENON_RETURN_IF_ERROR(prepared.work.create());
    TENON_RETURN_IF_ERROR(prepared.work.submit(stream));
    TENON_RETURN_IF_ERROR(subject.finish(stream));
    const Status same = prepared.compare();
    if (!same.ok()) return broken("C01", "on several threads a launch went wrong: {}", without_rule(same).message());
  }
  return {};
}

// A barrier that spins, so that two threads start at nearly the same time.
class Gate {
 public:
  void pass() {
    const int64_t mine = arrived_.fetch_add(1) / 2;
    for (int spins = 0; arrived_.load() / 2 == mine; ++spins) {
      if (spins > 20000) std::this_thread::yield();
    }
  }

 private:
  std::atomic<int64_t> arrived_ = 0;
};

// The work of one of two threads. Both launch the same case at the same time, each on its own stream with its own
// values.
struct Racer {
  Stream stream;
  std::unique_ptr<Prepared> prepared;
  Status status;

  // Prepares the launch, one racer at a time: primitive_pack of a shared primitive must not run during another thread's
  // launch.
  Status prepare(Subject& subject, std::mutex& preparing) {
    const std::lock_guard lock(preparing);
    prepared->work.put(prepared->start);
    const Status uploaded = prepared->work.upload(stream);
    return uploaded.ok() ? subject.finish(stream) : uploaded;
  }

  Status step(Subject& subject, std::mutex& preparing, Gate& start) {
    const Drain drain(subject, stream);
    const Status ready = prepare(subject, preparing);
    start.pass();
    TENON_RETURN_IF_ERROR(ready);
    TENON_RETURN_IF_ERROR(prepared->work.launch(stream));
    TENON_RETURN_IF_ERROR(prepared->work.download(stream));
    TENON_RETURN_IF_ERROR(subject.finish(stream));
    return prepared->compare();
  }
};

Status race_once(Subject& subject, std::string_view what, Racer (&racers)[2]) {
  constexpr int rounds = 2;
  Gate start;
  std::mutex preparing;
  const auto run = [&](Racer& racer) {
    for (int round = 0; round < rounds; ++round) {
      const Status status = racer.step(subject, preparing, start);
      if (racer.status.ok()) racer.status = status;
    }
  };
  std::thread other;
  if (!start_thread(&other, [&] { run(racers[0]); })) return skipped("the system has no thread left.");
  run(racers[1]);
  other.join();
  for (const Racer& racer : racers) {
    if (racer.status.ok()) continue;
    return broken("C01", "two threads launched {} at once, each on its stream, and one was disturbed: {}", what,
                  without_rule(racer.status).message());
  }
  return {};
}

// A collision is a matter of chance. Long launches overlap in every round, so two rounds are enough for them; short
// launches are repeated while there is time.
Status race(Subject& subject, std::string_view what, Racer (&racers)[2]) {
  using Clock = std::chrono::steady_clock;
  constexpr auto patience = std::chrono::milliseconds(50);
  const auto begin = Clock::now();
  do {
    TENON_RETURN_IF_ERROR(race_once(subject, what, racers));
  } while (Clock::now() - begin < patience);
  return {};
}

// Each thread launches its own primitive.
Status race_apart(Subject& subject, const cases::Case& sample) {
  TENON_ASSIGN_OR_RETURN(const ep_primitive_desc desc, accepted_desc(subject, sample));
  Racer racers[2];
  for (uint64_t i = 0; i < 2; ++i) {
    TENON_ASSIGN_OR_RETURN(racers[i].stream, subject.make_stream());
    racers[i].prepared = std::make_unique<Prepared>(subject, sample, desc, 800 + i);
    TENON_RETURN_IF_ERROR(racers[i].prepared->work.create());
  }
  return race(subject, "two primitives", racers);
}

// `sample` with other launch scalars. Only floats change: an integer may be a count.
cases::Case with_other_scalars(cases::Case sample) {
  for (ep_scalar& scalar : sample.scalars) {
    if (is_floating(static_cast<DType>(scalar.dtype))) scalar.value.f64 *= 1.5;
  }
  return sample;
}

// Both threads launch one primitive, each with its own operands and scalars. The host's services pause, so that a
// launch that calls one between setting its arguments and enqueueing them is overtaken there.
Status race_together(Subject& subject, const cases::Case& sample) {
  TENON_ASSIGN_OR_RETURN(const ep_primitive_desc desc, accepted_desc(subject, sample));
  const bool bakes = desc.baked_scalars != 0;
  Racer racers[2];
  for (uint64_t i = 0; i < 2; ++i) {
    TENON_ASSIGN_OR_RETURN(racers[i].stream, subject.make_stream());
    const cases::Case mine = i == 1 && !bakes ? with_other_scalars(sample) : sample;
    racers[i].prepared = std::make_unique<Prepared>(subject, mine, desc, 900 + i);
  }
  TENON_RETURN_IF_ERROR(racers[0].prepared->work.create());
  TENON_RETURN_IF_ERROR(racers[1].prepared->work.share(racers[0].prepared->work));
  subject.host.linger(true);
  const Status status = race(subject, "one primitive", racers);
  subject.host.linger(false);
  return status;
}

}  // namespace

Status streams_on_threads(Subject& subject) {
  constexpr size_t count = 4;
  const cases::Case* sample = find_sound_sample(subject);
  ep_primitive_desc desc{};
  if (sample != nullptr) {
    TENON_ASSIGN_OR_RETURN(desc, accepted_desc(subject, *sample));
  }
  std::vector<Stream> streams;
  for (size_t i = 0; i < count; ++i) {
    TENON_ASSIGN_OR_RETURN(Stream stream, subject.make_stream());
    streams.push_back(std::move(stream));
  }
  std::vector<Status> results(count);
  std::vector<std::thread> threads(count);
  bool all_started = true;
  for (size_t i = 0; i < count && all_started; ++i) {
    all_started =
        start_thread(&threads[i], [&, i] { results[i] = use(subject, streams[i], sample, &desc, 500 + 50 * i); });
  }
  for (std::thread& thread : threads) {
    if (thread.joinable()) thread.join();
  }
  if (!all_started) return skipped("the system has no thread left.");
  for (const Status& result : results) TENON_RETURN_IF_ERROR(result);
  return for_each_of(find_long_samples(subject), [&](const cases::Case& one) { return race_apart(subject, one); });
}

Status streams_share_a_primitive(Subject& subject) {
  std::vector<cases::Case> samples = find_long_samples(subject);
  if (samples.empty()) return skipped("of the cases it supports none gives the right result even alone.");
  const auto with_scalars = find_sound_case(subject, "unary/selu/f32/vector");
  if (with_scalars.has_value()) samples.push_back(*with_scalars);
  return for_each_of(samples, [&](const cases::Case& one) { return race_together(subject, one); });
}

}  // namespace tenon::conformance
