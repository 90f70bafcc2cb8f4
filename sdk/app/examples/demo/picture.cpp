#include "picture.h"

#include <stb/stb_image.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <memory>
#include <stdexcept>

namespace {

constexpr int longest_side = 1 << 14;

using File = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;
using Bytes = std::unique_ptr<stbi_uc, void (*)(void*)>;

struct Rgba {
  int width = 0;
  int height = 0;
  Bytes bytes{nullptr, stbi_image_free};
};

Rgba decode(const std::string& path) {
  File file(std::fopen(path.c_str(), "rb"), std::fclose);
  if (!file) throw std::runtime_error("cannot open " + path + ": " + std::strerror(errno) + ".");
  Rgba out;
  int channels = 0;
  const bool known = stbi_info_from_file(file.get(), &out.width, &out.height, &channels) != 0;
  if (known && (out.width > longest_side || out.height > longest_side)) {
    throw std::runtime_error(path + " has " + std::to_string(out.width) + " x " + std::to_string(out.height) +
                             " pixels; at most " + std::to_string(longest_side) + " a side are read.");
  }
  if (known) out.bytes.reset(stbi_load_from_file(file.get(), &out.width, &out.height, &channels, 4));
  if (!out.bytes) {
    throw std::runtime_error(path + " is not a picture that can be read (" + stbi_failure_reason() +
                             "); PNG, JPEG, BMP, GIF and PNM can.");
  }
  return out;
}

// Returns the share of input pixel `pixel` inside the output cell [from, to).
float share(int pixel, double from, double to) {
  return static_cast<float>(std::min(pixel + 1.0, to) - std::max<double>(pixel, from));
}

// One channel of a pixel. Transparent pixels show white.
float value(const stbi_uc* pixel, int channel) {
  const float alpha = pixel[3] / 255.0f;
  return alpha * (pixel[channel] / 255.0f) + (1 - alpha);
}

// Returns the mean colour of [x0, x1) x [y0, y1). Pixels at the edge are weighted by their share inside.
std::array<float, 3> average(const Rgba& picture, double x0, double x1, double y0, double y1) {
  std::array<float, 3> sum = {};
  float weight = 0;
  for (int y = static_cast<int>(y0); y < y1; y++) {
    for (int x = static_cast<int>(x0); x < x1; x++) {
      const float part = share(y, y0, y1) * share(x, x0, x1);
      const stbi_uc* pixel = picture.bytes.get() + 4 * (static_cast<size_t>(y) * picture.width + x);
      for (int channel = 0; channel < 3; channel++) sum[channel] += part * value(pixel, channel);
      weight += part;
    }
  }
  for (float& channel : sum) channel /= weight;
  return sum;
}

}  // namespace

std::vector<float> read_picture(const std::string& path, int side) {
  const Rgba picture = decode(path);
  const int square = std::min(picture.width, picture.height);
  const int left = (picture.width - square) / 2;
  const int top = (picture.height - square) / 2;
  const auto edge = [&](int cell) { return static_cast<double>(square) * cell / side; };
  std::vector<float> planes(3 * static_cast<size_t>(side) * side);
  for (int row = 0; row < side; row++) {
    for (int column = 0; column < side; column++) {
      const auto colour =
          average(picture, left + edge(column), left + edge(column + 1), top + edge(row), top + edge(row + 1));
      for (int channel = 0; channel < 3; channel++) planes[(channel * side + row) * side + column] = colour[channel];
    }
  }
  return planes;
}
