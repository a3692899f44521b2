/* thiele devices: what a fit can work on. */
#include <string.h>

#include "cli.h"

static const cli_option devices_options[] = {
    {"json", 0, NULL, CLI_AT(json), NULL, "JSON for programs", 0, 0},
    {0},
};

static const cli_group groups[] = {{"Output", devices_options}, {0}};

static void put_json(cli_json *json, const thiele_device *device)
{
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "name", device->name);
    cli_json_integer(json, "memory", (int64_t)device->memory);
    cli_json_integer(json, "available", (int64_t)device->available);
    if (device->threads > 0) {
        cli_json_integer(json, "threads", device->threads);
    } else {
        cli_json_text(json, "model", device->model);
        cli_json_number(json, "compute_capability", device->major + 0.1 * device->minor);
        cli_json_integer(json, "driver", device->driver);
        cli_json_integer(json, "double_slowdown", device->double_slowdown);
    }
    cli_json_close(json, '}');
}

static void put_row(const thiele_device *device)
{
    const double gib = 1073741824.0;
    if (device->threads > 0) {
        cli_row(device->name, "%d threads, %.1f GiB", device->threads, (double)device->memory / gib);
        return;
    }
    cli_row(device->name, "%s, %.1f of %.1f GiB free, compute capability %d.%d, driver for CUDA %d.%d", device->model,
            (double)device->available / gib, (double)device->memory / gib, device->major, device->minor,
            device->driver / 1000, device->driver % 1000 / 10);
}

static int run(cli_settings *settings)
{
    int count = thiele_device_count(settings->ctx);
    char why[512];
    thiele_status status = THIELE_OK;
    cli_json json = {.stream = stdout, .inline_from = 3};
    snprintf(why, sizeof why, "%s", count == 1 ? thiele_context_message(settings->ctx) : "");
    if (settings->json) {
        cli_json_open(&json, NULL, '{');
        cli_json_open(&json, "devices", '[');
    }
    for (int i = 0; i < count; i++) {
        thiele_device device;
        CLI_TRY(thiele_device_describe(settings->ctx, i, &device));
        if (settings->json) {
            put_json(&json, &device);
        } else {
            put_row(&device);
        }
    }
    if (settings->json) {
        cli_json_close(&json, ']');
        if (count == 1) {
            cli_json_text(&json, "why", why);
        }
        cli_json_close(&json, '}');
    } else if (count == 1) {
        cli_row("cuda", "none: %s", why);
    }
out:
    return cli_finish(settings, status);
}

const cli_command cmd_devices = {
    .name = "devices",
    .usage = "[--json]",
    .summary = "list the devices a fit can use",
    .about = "Lists the processor and the CUDA cards that --device accepts, or says why there is no card.",
    .groups = groups,
    .examples = "  thiele devices\n"
                "  thiele fit train.csv --target y --method exact --device cuda:0\n",
    .run = run,
};
