// The engine of the fuzz targets: see README.md.
#include <signal.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "ep_api/ep_api.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
extern "C" __attribute__((weak)) size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size,
                                                                unsigned int seed);
extern "C" __attribute__((weak)) void __sanitizer_set_death_callback(void (*callback)());
extern "C" void __sanitizer_cov_trace_pc();

#if EP_SANITIZER_OF_THIS_BUILD == EP_SANITIZER_ADDRESS
extern "C" const char* __asan_default_options();
extern "C" const char* __asan_default_options() { return "hard_rss_limit_mb=2048:allocator_may_return_null=1"; }
#endif

namespace {

using Bytes = std::vector<uint8_t>;

// --- which code was reached ---

constexpr size_t map_size = size_t{1} << 16;
std::array<uint8_t, map_size> reached{};
size_t places_reached = 0;
bool reached_new_place = false;

// --- the input under test, for those who come after a crash ---

const Bytes* current = nullptr;
std::string crash_path;
std::string program;

void save_current() {
  if (!current) return;
  const Bytes* input = current;
  current = nullptr;
  std::ofstream(crash_path, std::ios::binary)
      .write(reinterpret_cast<const char*>(input->data()), static_cast<std::streamsize>(input->size()));
  std::fprintf(stderr, "\nthe input is in %s; to run it again: %s %s\n", crash_path.c_str(), program.c_str(),
               crash_path.c_str());
}

extern "C" void on_signal(int number) {
  std::fprintf(stderr, "\nfuzz: signal %d (%s)\n", number,
               number == SIGALRM ? "one input took too long" : strsignal(number));
  save_current();
  signal(number == SIGALRM ? SIGABRT : number, SIG_DFL);
  raise(number == SIGALRM ? SIGABRT : number);
}

struct Options {
  double seconds = 10;
  uint64_t random = std::random_device{}();
  uint64_t memory_mib = 1024;
  long limit_seconds = 5;
  size_t largest = 1 << 20;
  std::vector<std::string> paths;
};

Options read_options(int count, char** arguments) {
  Options options;
  for (int place = 1; place < count; ++place) {
    const std::string word = arguments[place];
    const char* value = place + 1 < count ? arguments[place + 1] : "0";
    if (word == "--seconds") options.seconds = std::atof(value);
    if (word == "--random") options.random = std::strtoull(value, nullptr, 10);
    if (word == "--memory") options.memory_mib = std::strtoull(value, nullptr, 10);
    if (word == "--limit") options.limit_seconds = std::atol(value);
    if (word == "--largest") options.largest = std::strtoull(value, nullptr, 10);
    if (word.starts_with("--")) {
      ++place;
    } else {
      options.paths.push_back(word);
    }
  }
  return options;
}

Bytes read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return Bytes(std::istreambuf_iterator<char>(file), {});
}

std::vector<Bytes> read_seeds(const Options& options) {
  std::vector<Bytes> seeds;
  const auto add = [&](const std::filesystem::path& path) {
    Bytes bytes = read_file(path);
    if (bytes.size() <= options.largest) seeds.push_back(std::move(bytes));
  };
  for (const std::string& path : options.paths) {
    if (!std::filesystem::is_directory(path)) {
      add(path);
      continue;
    }
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(path)) {
      if (entry.is_regular_file()) files.push_back(entry.path());
    }
    std::sort(files.begin(), files.end());
    for (const auto& file : files) add(file);
  }
  return seeds;
}

void guard(const Options& options) {
  if (__sanitizer_set_death_callback) __sanitizer_set_death_callback(&save_current);
  std::vector<int> numbers = {SIGALRM, SIGABRT};
  if (EP_SANITIZER_OF_THIS_BUILD != EP_SANITIZER_ADDRESS) {
    numbers.insert(numbers.end(), {SIGSEGV, SIGBUS, SIGFPE, SIGILL});
    const rlimit limit{options.memory_mib << 20, options.memory_mib << 20};
    setrlimit(RLIMIT_AS, &limit);
  }
  for (int number : numbers) signal(number, &on_signal);
}

// True if the input reached code that none before had reached.
bool run(const Bytes& input, const Options& options) {
  current = &input;
  reached_new_place = false;
  const itimerval limit{{0, 0}, {options.limit_seconds, 0}};
  setitimer(ITIMER_REAL, &limit, nullptr);
  LLVMFuzzerTestOneInput(input.data(), input.size());
  current = nullptr;
  return reached_new_place;
}

// --- changes ---

class Mutator {
 public:
  Mutator(uint64_t seed, size_t largest) : random_(seed), largest_(largest) {}

  size_t below(size_t limit) { return limit ? static_cast<size_t>(random_() % limit) : 0; }

  Bytes change(const Bytes& from, const Bytes& other) {
    Bytes bytes = from;
    if (LLVMFuzzerCustomMutator && below(2)) {
      const size_t size = bytes.size();
      const size_t room = std::min(largest_, 2 * size + 4096);
      bytes.resize(std::max(size, room));
      bytes.resize(LLVMFuzzerCustomMutator(bytes.data(), size, bytes.size(), static_cast<unsigned>(random_())));
      return bytes;
    }
    for (size_t left = 1 + below(5); left > 0; --left) change_once(bytes, other);
    if (bytes.size() > largest_) bytes.resize(largest_);
    return bytes;
  }

 private:
  void change_once(Bytes& bytes, const Bytes& other) {
    if (bytes.empty()) bytes.push_back(0);
    const size_t at = below(bytes.size());
    switch (below(8)) {
      case 0: bytes[at] ^= static_cast<uint8_t>(1u << below(8)); break;
      case 1: bytes[at] = static_cast<uint8_t>(random_()); break;
      case 2: bytes[at] = static_cast<uint8_t>(bytes[at] + below(17) - 8); break;
      case 3: put_number(bytes, at); break;
      case 4: bytes.erase(at_(bytes, at), at_(bytes, at + below(std::min<size_t>(64, bytes.size() - at)))); break;
      case 5: bytes.insert(at_(bytes, at), below(32), static_cast<uint8_t>(random_())); break;
      case 6: copy_inside(bytes, at); break;
      default: take_from(bytes, at, other); break;
    }
  }

  static Bytes::iterator at_(Bytes& bytes, size_t place) { return bytes.begin() + static_cast<std::ptrdiff_t>(place); }

  // Numbers that break arithmetic, in 1 to 8 bytes.
  void put_number(Bytes& bytes, size_t at) {
    constexpr uint64_t numbers[] = {0,
                                    1,
                                    0x7f,
                                    0x80,
                                    0xff,
                                    0x7fff,
                                    0x8000,
                                    0xffff,
                                    0x7fffffff,
                                    0x80000000,
                                    0xffffffff,
                                    0x7fffffffffffffff,
                                    0x8000000000000000,
                                    0xffffffffffffffff,
                                    0x100000,
                                    4096};
    const uint64_t number = numbers[below(std::size(numbers))] + below(3) - 1;
    const size_t width = std::min(size_t{1} << below(4), bytes.size() - at);
    std::memcpy(bytes.data() + at, &number, width);
  }

  void copy_inside(Bytes& bytes, size_t at) {
    const size_t from = below(bytes.size());
    const size_t size = below(std::min(bytes.size() - at, bytes.size() - from));
    std::memmove(bytes.data() + at, bytes.data() + from, size);
  }

  void take_from(Bytes& bytes, size_t at, const Bytes& other) {
    if (other.empty()) return;
    const size_t from = below(other.size());
    const size_t size = below(std::min<size_t>(256, other.size() - from));
    bytes.insert(at_(bytes, at), other.begin() + static_cast<std::ptrdiff_t>(from),
                 other.begin() + static_cast<std::ptrdiff_t>(from + size));
  }

  std::mt19937_64 random_;
  size_t largest_;
};

}  // namespace

// Called by every basic block of the sources a target is COVERED by.
extern "C" void __sanitizer_cov_trace_pc() {
  const auto here = reinterpret_cast<uintptr_t>(__builtin_return_address(0)) - reinterpret_cast<uintptr_t>(&on_signal);
  uint8_t& place = reached[(here ^ (here >> 16)) % map_size];
  if (place) return;
  place = 1;
  ++places_reached;
  reached_new_place = true;
}

int main(int count, char** arguments) {
  const Options options = read_options(count, arguments);
  program = arguments[0];
  crash_path = "crash-" + std::filesystem::path(program).filename().string();
  std::vector<Bytes> corpus = read_seeds(options);
  if (corpus.empty()) {
    std::fprintf(stderr, "fuzz: name at least one file or folder with seeds.\n");
    return 2;
  }
  guard(options);
  for (const Bytes& seed : corpus) run(seed, options);
  const std::string name = std::filesystem::path(options.paths[0]).filename();
  const bool one_input = corpus.size() == 1 && name.rfind("crash-", 0) == 0;
  if (one_input) return 0;

  const size_t seeds = corpus.size();
  Mutator mutator(options.random, options.largest);
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(options.seconds);
  uint64_t runs = 0;
  while (std::chrono::steady_clock::now() < end) {
    const Bytes input = mutator.change(corpus[mutator.below(corpus.size())], corpus[mutator.below(corpus.size())]);
    if (run(input, options)) corpus.push_back(input);
    ++runs;
  }
  setitimer(ITIMER_REAL, nullptr, nullptr);
  std::printf("%llu inputs from %zu seeds in %.0f s, %zu kept, %zu places of the code reached (--random %llu)\n",
              static_cast<unsigned long long>(runs), seeds, options.seconds, corpus.size() - seeds, places_reached,
              static_cast<unsigned long long>(options.random));
  return 0;
}
