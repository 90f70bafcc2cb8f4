// TENON_API marks the symbols that libtenon.so exports; all others are hidden.
#pragma once

#define TENON_API __attribute__((visibility("default")))
