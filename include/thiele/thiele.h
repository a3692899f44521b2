/* Thiele: Gaussian-process inference at scale. This header includes the whole public API. */
#ifndef THIELE_THIELE_H
#define THIELE_THIELE_H

#include <thiele/arrow.h>
#include <thiele/compare.h>
#include <thiele/context.h>
#include <thiele/device.h>
#include <thiele/kernel.h>
#include <thiele/likelihood.h>
#include <thiele/metrics.h>
#include <thiele/model.h>
#include <thiele/options.h>
#include <thiele/predictor.h>
#include <thiele/ranks.h>
#include <thiele/report.h>
#include <thiele/status.h>
#include <thiele/stream.h>
#include <thiele/sums.h>
#include <thiele/table.h>
#include <thiele/version.h>

#endif
