// Optimisers for applications: SGD, Adam, AdamW, gradient clipping, learning rate schedules.
#pragma once

#include "sdk/app/language.h"

#include "core/optim/optim.h"
