#include "core/cluster/topology.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>

#include "primitives/status/error.h"
#include "primitives/text/format.h"
#include "primitives/text/visible.h"

namespace tenon::cluster {
namespace {

constexpr int64_t kMostRanks = int64_t{1} << 24;
constexpr size_t kMostLevels = 8;

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t\r"), last = text.find_last_not_of(" \t\r");
  return first == std::string_view::npos ? std::string_view() : text.substr(first, last - first + 1);
}

// Removes and returns the part of `text` before the next `separator`.
std::string_view taken(std::string_view* text, char separator) {
  const size_t at = text->find(separator);
  const std::string_view part = text->substr(0, at);
  *text = at == std::string_view::npos ? std::string_view() : text->substr(at + 1);
  return part;
}

// The factor of a prefix: 1 for an empty prefix, nothing for an unknown one.
std::optional<double> prefix(std::string_view text) {
  constexpr std::array<std::pair<std::string_view, double>, 9> known = {
      {{"", 1}, {"n", 1e-9}, {"u", 1e-6}, {"m", 1e-3}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}}};
  for (const auto& [name, factor] : known) {
    if (name == text) return factor;
  }
  return std::nullopt;
}

class Reader {
 public:
  Topology read(std::string_view text) {
    while (!text.empty()) {
      ++line_;
      std::string_view line = taken(&text, '\n');
      line = trimmed(line.substr(0, line.find('#')));
      if (!line.empty()) read_line(line);
    }
    if (!has_rank_) fail("there is no line 'rank: 400 TFLOP/s, 3 TB/s, 80 GB'");
    if (made_.levels.empty()) fail("there is no level, such as 'node: 8 ranks, 5 us, 300 GB/s'");
    return std::move(made_);
  }

 private:
  // The quantities of a line, each at most once.
  struct Quantities {
    std::optional<double> flops, rate, bytes, seconds, members;
  };

  [[noreturn]] void fail(const std::string& why) const {
    throw Error(Code::invalid_argument, fmt::format("The topology, line {}: {}.", line_, why),
                "`tenon plan --help` shows the format.");
  }

  void read_line(std::string_view line) {
    if (line.find(':') == std::string_view::npos) fail(fmt::format("'{}' has no ':' after a name", visible(line)));
    const std::string_view name = trimmed(taken(&line, ':'));
    if (name.empty()) fail("a name is expected before ':'");
    Quantities given;
    while (!line.empty()) read_quantity(trimmed(taken(&line, ',')), &given);
    if (name == "rank") {
      set_rank(given);
    } else {
      add_level(name, given);
    }
  }

  void read_quantity(std::string_view text, Quantities* given) {
    double number = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    const std::string shown = visible(text);
    if (error != std::errc() || !std::isfinite(number) || number <= 0) {
      fail(fmt::format("'{}' is not a number above 0 with a unit", shown));
    }
    const std::string_view unit = trimmed(text.substr(static_cast<size_t>(end - text.data())));
    const auto set = [&](std::optional<double>& quantity, double value) {
      if (quantity) fail(fmt::format("'{}' is given twice", shown));
      quantity = value;
    };
    const auto ends_with = [&](std::string_view what) { return unit.ends_with(what); };
    const auto scaled = [&](std::string_view what) -> std::optional<double> {
      if (!ends_with(what)) return std::nullopt;
      const std::optional<double> factor = prefix(unit.substr(0, unit.size() - what.size()));
      return factor ? std::optional(*factor * number) : std::nullopt;
    };
    if (unit == members_) return set(given->members, number);
    if (const auto value = scaled("FLOP/s")) return set(given->flops, *value);
    if (const auto value = scaled("B/s")) return set(given->rate, *value);
    if (const auto value = scaled("B")) return set(given->bytes, *value);
    if (const auto value = scaled("s")) return set(given->seconds, *value);
    fail(fmt::format("'{}' has the unit '{}'; known units are FLOP/s, B/s, B, s and {}", shown, visible(unit),
                     members_));
  }

  void set_rank(const Quantities& given) {
    if (has_rank_) fail("two lines describe the rank");
    if (!given.flops || !given.rate) fail("a rank needs its arithmetic (400 TFLOP/s) and its memory's rate (3 TB/s)");
    if (given.members) fail(fmt::format("a rank has no {}", members_));
    has_rank_ = true;
    made_.compute = *given.flops;
    made_.bandwidth = *given.rate;
    made_.memory = given.bytes.value_or(0);
    made_.start = given.seconds.value_or(0);
  }

  void add_level(std::string_view name, const Quantities& given) {
    if (!given.members || !given.seconds || !given.rate) {
      fail(fmt::format("a level needs its number of {}, the time of a step (5 us) and a rate (300 GB/s)", members_));
    }
    if (given.flops || given.bytes) fail("a level cannot have arithmetic or memory");
    const double members = *given.members;
    if (members != std::floor(members) || members * static_cast<double>(made_.ranks()) > kMostRanks) {
      fail(fmt::format("{} {} are not possible; the number of ranks must be whole and at most {}", members, members_,
                       kMostRanks));
    }
    if (made_.levels.size() == kMostLevels) fail(fmt::format("there are more than {} levels", kMostLevels));
    made_.levels.push_back({std::string(name), static_cast<int64_t>(members), *given.seconds, *given.rate});
    members_ = std::string(name) + "s";
  }

  Topology made_;
  std::string members_ = "ranks";
  bool has_rank_ = false;
  int line_ = 0;
};

// "300 GB/s"
std::string quantity(double value, std::string_view unit) {
  constexpr std::array<std::pair<double, std::string_view>, 9> prefixes = {
      {{1e15, "P"}, {1e12, "T"}, {1e9, "G"}, {1e6, "M"}, {1e3, "k"}, {1, ""}, {1e-3, "m"}, {1e-6, "u"}, {1e-9, "n"}}};
  for (const auto& [factor, name] : prefixes) {
    if (value >= factor || factor == 1e-9) return fmt::format("{:.4g} {}{}", value / factor, name, unit);
  }
  return {};
}

double steps_of(global::Collective collective, double members) {
  const double halvings = std::ceil(std::log2(members));
  switch (collective) {
    case global::Collective::all_to_all: return members - 1;
    case global::Collective::all_reduce: return 2 * halvings;
    default: return halvings;
  }
}

}  // namespace

int64_t Topology::ranks() const {
  int64_t ranks = 1;
  for (const Level& level : levels) ranks *= level.members;
  return ranks;
}

Topology parse_topology(std::string_view text) { return Reader().read(text); }

std::string to_string(const Topology& topology) {
  std::string text =
      fmt::format("rank: {}, {}", quantity(topology.compute, "FLOP/s"), quantity(topology.bandwidth, "B/s"));
  if (topology.memory > 0) text += ", " + quantity(topology.memory, "B");
  if (topology.start > 0) text += ", " + quantity(topology.start, "s");
  std::string members = "ranks";
  for (const Level& level : topology.levels) {
    text += fmt::format("\n{}: {} {}, {}, {}", level.name, level.members, members, quantity(level.latency, "s"),
                        quantity(level.bandwidth, "B/s"));
    members = level.name + "s";
  }
  return text + "\n";
}

Lines::Lines(const Topology& topology, const Dims& grid) : topology_(topology), parts_(grid.size()) {
  double stride = 1;
  for (int32_t axis = grid.rank() - 1; axis >= 0; --axis) {
    const auto ranks = static_cast<double>(grid[axis]);
    std::vector<Part>& parts = parts_[static_cast<size_t>(axis)];
    double group = 1, before = 1;
    for (size_t level = 0; level < topology.levels.size(); ++level) {
      group *= static_cast<double>(topology.levels[level].members);
      const bool is_last = level + 1 == topology.levels.size();
      const double inside = is_last ? ranks : std::clamp(group / stride, 1.0, ranks);
      if (inside > before) {
        Part part{level, inside / before};
        part.share = (part.members - 1) * (ranks / inside) / (ranks - 1);
        part.share_of_pairs = (inside - before) / (ranks - 1);
        // A gather runs from outside to inside, so elements from outer groups are sent again inside.
        parts.push_back(part);
      }
      before = std::max(before, inside);
    }
    stride *= ranks;
  }
}

double Lines::seconds(const global::Sent& sent, double bytes) const {
  double seconds = 0;
  for (const Part& part : parts_[static_cast<size_t>(sent.axis)]) {
    const bool pairs = sent.collective == global::Collective::all_to_all;
    const Level& level = topology_.levels[part.level];
    seconds += level.latency * steps_of(sent.collective, part.members) +
               bytes * (pairs ? part.share_of_pairs : part.share) / level.bandwidth;
  }
  return seconds;
}

void Lines::add_bytes(const global::Sent& sent, double bytes, std::vector<double>* per_level) const {
  for (const Part& part : parts_[static_cast<size_t>(sent.axis)]) {
    const bool pairs = sent.collective == global::Collective::all_to_all;
    (*per_level)[part.level] += bytes * (pairs ? part.share_of_pairs : part.share);
  }
}

}  // namespace tenon::cluster
