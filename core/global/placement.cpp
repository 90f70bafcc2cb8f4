#include "core/global/placement.h"

#include <algorithm>
#include <cstring>
#include <iterator>
#include <map>
#include <mutex>
#include <utility>

#include "core/global/communicator.h"
#include "primitives/status/error.h"
#include "primitives/text/format.h"

namespace tenon::global {

struct Placement::State {
  std::string device_type, text;
  Dims grid;
  std::vector<int32_t> ranks;
  int32_t position = -1;
  Device device;
  std::vector<std::shared_ptr<Communicator>> lines;  // one per axis of the grid
};

namespace {

Dims coordinates_in(const Dims& grid, int32_t position) {
  Dims coordinates = Dims::filled(grid.rank(), 0);
  int64_t rest = position;
  for (int32_t axis = grid.rank() - 1; axis >= 0; --axis) {
    coordinates[axis] = rest % grid[axis];
    rest /= grid[axis];
  }
  return coordinates;
}

// "[[0, 1], [2, 3]]"
std::string nested(const Dims& grid, std::span<const int32_t> ranks, int32_t axis) {
  if (ranks.empty()) return "[]";
  if (axis == grid.rank()) return fmt::format("{}", ranks[0]);
  const size_t each = ranks.size() / static_cast<size_t>(grid[axis]);
  std::string text = "[";
  for (int64_t i = 0; i < grid[axis]; ++i) {
    if (i > 0) text += ", ";
    text += nested(grid, ranks.subspan(static_cast<size_t>(i) * each, each), axis + 1);
  }
  return text + "]";
}

Status check(std::string_view device, const Dims& grid, std::span<const int32_t> ranks, int32_t world) {
  const auto wrong = [](std::string text) { return Status(Code::invalid_argument, std::move(text)); };
  if (device.empty()) return wrong("Placement: the device has no name.");
  int64_t places = 1;
  for (const int64_t dim : grid) {
    if (dim < 1) return wrong(fmt::format("Placement: the grid {} has a dim below 1.", grid));
    places *= dim;
  }
  if (grid.empty() || places != std::ssize(ranks)) {
    return wrong(fmt::format("Placement: {} ranks do not fill the grid {}.", ranks.size(), grid));
  }
  std::vector<bool> seen(static_cast<size_t>(world));
  for (const int32_t rank : ranks) {
    if (rank < 0 || rank >= world) {
      return wrong(fmt::format("Placement: there is no rank {}; the launch has the ranks 0 to {}.", rank, world - 1));
    }
    if (seen[static_cast<size_t>(rank)]) return wrong(fmt::format("Placement: rank {} occurs twice.", rank));
    seen[static_cast<size_t>(rank)] = true;
  }
  return {};
}

// The device of this rank.
Result<Device> open(std::string_view name, const Communicator& world) {
  const auto try_open = [](std::string_view spelling) -> Result<Device> {
    try {
      return Device(spelling);
    } catch (const Error& error) {
      return error.status();
    }
  };
  if (name.find(':') == std::string_view::npos) {
    Result<Device> numbered = try_open(fmt::format("{}:{}", name, world.node_rank()));
    if (numbered.ok()) return numbered;
  }
  return try_open(name);
}

// The facts that each rank sends about the placement it makes. Has a fixed size, so that one gather collects all.
struct Said {
  int32_t code = 0;
  char placement[252] = {};
  char trouble[512] = {};
};

std::string_view text_of(const char* text, size_t room) { return {text, strnlen(text, room)}; }

// Ok if all ranks make this placement and each has its device; else the same error on all of them.
Status agree(Communicator& world, const std::string& text, const Status& own) {
  if (world.size() == 1) return own;
  std::vector<Said> all(static_cast<size_t>(world.size()));
  Said said;
  said.code = static_cast<int32_t>(own.code());
  text.copy(said.placement, sizeof said.placement - 1);
  own.message().copy(said.trouble, sizeof said.trouble - 1);
  const std::vector<int64_t> counts(static_cast<size_t>(world.size()), sizeof(Said));
  TENON_RETURN_IF_ERROR(world.all_gather(&said, all.data(), counts, DType::u8, "Placement"));
  for (size_t rank = 0; rank < all.size(); ++rank) {
    const Said& other = all[rank];
    if (other.code != static_cast<int32_t>(Code::ok)) {
      return Status(static_cast<Code>(other.code), fmt::format("Placement {} cannot be made, on rank {}: {}", text,
                                                               rank, text_of(other.trouble, sizeof other.trouble)));
    }
    if (std::memcmp(other.placement, all[0].placement, sizeof other.placement) != 0) {
      return Status(Code::invalid_argument,
                    fmt::format("The ranks make different placements: rank 0 {}, and rank {} {}.",
                                text_of(all[0].placement, sizeof other.placement), rank,
                                text_of(other.placement, sizeof other.placement)));
    }
  }
  return {};
}

}  // namespace

std::shared_ptr<const Placement::State> Placement::make(std::string_view device, const Dims& grid,
                                                        std::span<const int32_t> ranks) {
  Communicator& world = *value_or_throw(Communicator::world());
  const Status checked = check(device, grid, ranks, world.size());
  const Dims list{ranks.size()};
  const std::string text = checked.ok() ? fmt::format("{} {}", device, nested(grid, ranks, 0))
                                        : fmt::format("{} {} in a grid {}", device, nested(list, ranks, 0), grid);
  if (!checked.ok()) {
    throw_if_error(agree(world, text, checked));
    throw Error(checked);
  }
  // The placements made so far, by text. They are few, and lines between ranks are expensive.
  static std::mutex mutex;
  static auto* made = new std::map<std::string, std::shared_ptr<const State>>;
  const std::lock_guard lock(mutex);
  if (const auto found = made->find(text); found != made->end()) return found->second;

  auto state = std::make_shared<State>();
  state->device_type = device;
  state->text = text;
  state->grid = grid;
  state->ranks.assign(ranks.begin(), ranks.end());
  const auto own = std::find(ranks.begin(), ranks.end(), world.rank());
  if (own != ranks.end()) state->position = static_cast<int32_t>(own - ranks.begin());
  Result<Device> opened = open(device, world);
  throw_if_error(agree(world, text, state->position < 0 ? Status() : opened.status()));
  if (opened.ok()) state->device = opened.value();

  state->lines.resize(grid.size());
  const Dims coordinates = coordinates_in(grid, std::max(state->position, 0));
  for (int32_t axis = 0; axis < grid.rank(); ++axis) {
    if (grid[axis] == 1) continue;
    Dims others = coordinates;
    others[axis] = 0;
    int64_t colour = 0;
    for (int32_t each = 0; each < grid.rank(); ++each) colour = colour * grid[each] + others[each];
    const bool inside = state->position >= 0;
    state->lines[static_cast<size_t>(axis)] = value_or_throw(
        world.split(inside ? static_cast<int32_t>(colour) : -1, static_cast<int32_t>(coordinates[axis])));
  }
  return made->emplace(text, std::move(state)).first->second;
}

Placement::Placement(std::string_view device, const Dims& grid, std::span<const int32_t> ranks)
    : state_(make(device, grid, ranks)) {}

Placement::Placement(std::string_view device, const std::vector<int32_t>& ranks)
    : Placement(device, Dims{ranks.size()}, ranks) {}

Placement Placement::all(std::string_view device) {
  std::vector<int32_t> ranks(static_cast<size_t>(value_or_throw(Communicator::world())->size()));
  for (size_t rank = 0; rank < ranks.size(); ++rank) ranks[rank] = static_cast<int32_t>(rank);
  return Placement(device, ranks);
}

const Placement::State& Placement::state() const {
  if (state_ == nullptr) throw Error(Code::invalid_argument, "The placement is undefined: it was made without ranks.");
  return *state_;
}

const std::string& Placement::device_type() const { return state().device_type; }
const Dims& Placement::grid() const { return state().grid; }
std::span<const int32_t> Placement::ranks() const { return state().ranks; }
int32_t Placement::size() const { return static_cast<int32_t>(state().ranks.size()); }
int32_t Placement::position() const { return state().position; }
Device Placement::device() const { return state().device; }
Dims Placement::coordinates(int32_t position) const { return coordinates_in(state().grid, position); }
Communicator* Placement::line(int32_t axis) const { return state().lines[static_cast<size_t>(axis)].get(); }
std::string Placement::to_string() const { return state().text; }

bool operator==(const Placement& a, const Placement& b) { return a.state_ == b.state_; }

}  // namespace tenon::global
