// What shape is this?  tenon_demo [--device cpu] [--model shapes.onnx] PICTURE...
//
// Reads the pictures and runs the network of train.py on all of them in one batch. Prints the shape in each picture,
// with its chance, the device, the time, and which implementation ran each op.
#include <tenon/onnx.h>
#include <tenon/tenon.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "picture.h"

namespace {

constexpr int side = 64;
constexpr std::array shapes = {"circle", "square", "triangle", "star", "cross", "heart", "arrow", "moon"};
constexpr const char* usage =
    "usage: tenon_demo [--device NAME] [--model FILE] PICTURE...\n"
    "Says which shape each picture shows: circle, square, triangle, star, cross, heart, arrow or moon.\n"
    "Pictures are PNG, JPEG, BMP, GIF or PNM of any size; their middle is looked at.\n"
    "--device   cpu, cuda:0, ...; otherwise TENON_DEVICE or the best device\n"
    "--model    the network; otherwise shapes.onnx in the current folder\n";

struct Arguments {
  std::string device;
  std::string model = "shapes.onnx";
  std::vector<std::string> pictures;
};

Arguments parse(int argc, char** argv) {
  Arguments out;
  for (int i = 1; i < argc; i++) {
    const std::string_view argument = argv[i];
    if (argument == "--device" || argument == "--model") {
      if (++i == argc) throw std::invalid_argument(std::string(argument) + " needs a value.");
      (argument == "--device" ? out.device : out.model) = argv[i];
    } else if (argument.starts_with("-")) {
      throw std::invalid_argument("unknown option " + std::string(argument) + ".");
    } else {
      out.pictures.emplace_back(argument);
    }
  }
  if (out.pictures.empty()) throw std::invalid_argument("no picture is named.");
  return out;
}

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Pictures {
  std::vector<std::string> paths;  // the readable pictures
  std::vector<float> pixels;       // [paths.size(), 3, side, side]
  bool all = true;
};

Pictures read(const std::vector<std::string>& paths) {
  Pictures out;
  for (const std::string& path : paths) {
    try {
      const std::vector<float> planes = read_picture(path, side);
      out.pixels.insert(out.pixels.end(), planes.begin(), planes.end());
      out.paths.push_back(path);
    } catch (const std::exception& error) {
      std::fprintf(stderr, "tenon_demo: %s\n", error.what());
      out.all = false;
    }
  }
  return out;
}

void print_answer(const std::string& path, const float* chance) {
  std::array<size_t, shapes.size()> order;
  for (size_t i = 0; i < order.size(); i++) order[i] = i;
  std::ranges::sort(order, [&](size_t a, size_t b) { return chance[a] > chance[b]; });
  const std::string name = path.substr(path.find_last_of('/') + 1);
  const float best = chance[order[0]];
  std::printf("  %-20s %-9s %6.2f %%", name.c_str(), shapes[order[0]], 100 * best);
  if (best < 0.9f) std::printf("   not sure; or a %s, %.2f %%?", shapes[order[1]], 100 * chance[order[1]]);
  std::printf("\n");
}

// Prints one line per op and device: the rung, how often it ran, and why no better rung was used.
void print_executions(const std::vector<tenon::onnx::NodeExecution>& executions) {
  std::map<std::string, int> lines;
  std::vector<std::string> order;
  for (const tenon::onnx::NodeExecution& launch : executions) {
    std::string line = launch.op + "|" + launch.device + " " + launch.implementation + ", " + launch.rung;
    if (launch.bytes_copied) line += ", " + std::to_string(launch.bytes_copied) + " bytes copied";
    if (!launch.reason.empty()) line += " (" + launch.reason + ")";
    if (lines[line]++ == 0) order.push_back(line);
  }
  std::printf("report\n");
  for (const std::string& line : order) {
    const size_t bar = line.find('|');
    std::printf("  %2d x %-22s %s\n", lines[line], line.substr(0, bar).c_str(), line.substr(bar + 1).c_str());
  }
}

// Returns the median of up to 21 runs within a second, in milliseconds. Each run waits for its result.
double median_time(const tenon::onnx::Model& model, const tenon::onnx::Inputs& inputs) {
  std::vector<double> times;
  const Clock::time_point begin = Clock::now();
  do {
    const Clock::time_point start = Clock::now();
    model.run(inputs).front().to_host<float>();
    times.push_back(milliseconds_since(start));
  } while (times.size() < 21 && milliseconds_since(begin) < 1000);
  const auto middle = times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2);
  std::ranges::nth_element(times, middle);
  return *middle;
}

int run(const Arguments& arguments, Clock::time_point start) {
  const Pictures pictures = read(arguments.pictures);
  if (pictures.paths.empty()) return 1;
  const auto count = static_cast<int64_t>(pictures.paths.size());

  if (!arguments.device.empty()) tenon::Device::set_current(tenon::Device(arguments.device));
  const tenon::onnx::Model model = tenon::onnx::load(arguments.model);
  const tenon::Tensor images = tenon::Tensor::from<float>(pictures.pixels, {count, 3, side, side}, model.device());

  const std::vector<float> chances = model.run({{"image", images}}).front().to_host<float>();
  const double first = milliseconds_since(start);
  if (chances.size() != pictures.paths.size() * shapes.size()) {
    throw std::runtime_error(arguments.model + " does not answer with " + std::to_string(shapes.size()) +
                             " chances per picture; it is not the network of this demo.");
  }
  std::printf("pictures\n");
  for (size_t i = 0; i < pictures.paths.size(); i++) print_answer(pictures.paths[i], &chances[i * shapes.size()]);

  std::vector<tenon::onnx::NodeExecution> executions;
  model.run({{"image", images}}, &executions);
  const double again = median_time(model, {{"image", images}});
  std::printf("device\n  %s, %s\n", model.device().spelling().c_str(), model.device().name().c_str());
  std::printf("time\n  %.2f ms for %s in one batch; %.1f ms from the start of main to the first answer\n", again,
              count == 1 ? "one picture" : (std::to_string(count) + " pictures").c_str(), first);
  print_executions(executions);
  return pictures.all ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  const Clock::time_point start = Clock::now();
  for (int i = 1; i < argc; i++) {
    if (std::string_view(argv[i]) == "--help") return std::fputs(usage, stdout) < 0;
  }
  try {
    return run(parse(argc, argv), start);
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "tenon_demo: %s\n%s", error.what(), usage);
    return 2;
  } catch (const tenon::Error& error) {
    std::fprintf(stderr, "tenon_demo: %s\n", error.what());
    if (!error.remedy().empty()) std::fprintf(stderr, "%s\n", error.remedy().c_str());
    return 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "tenon_demo: %s\n", error.what());
    return 1;
  }
}
