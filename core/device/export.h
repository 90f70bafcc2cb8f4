// TENON_API marks what libtenon.so exports; everything else is hidden.
#pragma once

#define TENON_API __attribute__((visibility("default")))
