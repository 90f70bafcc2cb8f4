// Global tensors for applications: one tensor over the processes of a launch.
#pragma once

#include "sdk/app/language.h"

#include "core/global/checkpoint.h"
#include "core/global/global.h"
#include "core/global/pipeline.h"
