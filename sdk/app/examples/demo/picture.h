// Pictures from files, cut and scaled for the network.
#pragma once

#include <string>
#include <vector>

// Reads a PNG, JPEG, BMP, GIF or PNM file, cuts the largest square out of its middle and averages it down (or up) to
// side x side. Transparent parts become white. Gives the planes red, green, blue, row-major, 0..1: 3 * side * side
// values. Errors: throws std::runtime_error saying what is wrong with the file.
std::vector<float> read_picture(const std::string& path, int side);
