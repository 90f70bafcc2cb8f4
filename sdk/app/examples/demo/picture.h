// Reads pictures, and cuts and scales them for the network.
#pragma once

#include <string>
#include <vector>

// Reads a PNG, JPEG, BMP, GIF or PNM file, cuts out the largest square in the middle, and averages it to side x side.
// Transparent parts become white. Returns the planes red, green, blue, row-major, 0..1: 3 * side * side values. Errors:
// throws std::runtime_error with what is wrong with the file.
std::vector<float> read_picture(const std::string& path, int side);
