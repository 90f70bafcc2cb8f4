// Reads pictures, and cuts and scales them for the network.
#pragma once

#include <string>
#include <vector>

// Reads a PNG, JPEG, BMP, GIF or PNM file, crops the largest centred square, and scales it to side x side by averaging.
// Transparent parts become white. Returns 3 * side * side values in 0..1: the red, green and blue planes, row-major.
// Errors: throws std::runtime_error that says what is wrong with the file.
std::vector<float> read_picture(const std::string& path, int side);
