/* Input columns in a report: which are shown, and their values to and from the numbers that a model sees. */
#include <math.h>
#include <string.h>

#include "report/report.h"

static int find_input(const thi_encoder *encoder, const char *name)
{
    for (int i = 0; i < encoder->inputs; i++) {
        if (name != NULL && strcmp(encoder->input[i].name, name) == 0) {
            return i;
        }
    }
    return -1;
}

int thi_report_inputs(const thi_report *r, int shown[THI_REPORT_INPUTS])
{
    const thi_encoder *encoder = &r->model->encoder;
    const json_t *ranked = thi_value_at(r->describe, "relevance.inputs");
    int count = 0;
    for (size_t k = 0; k < json_array_size(ranked) && count < THI_REPORT_INPUTS; k++) {
        int i = find_input(encoder, json_string_value(json_object_get(json_array_get(ranked, k), "name")));
        if (i >= 0) {
            shown[count++] = i;
        }
    }
    for (int i = 0; i < encoder->inputs && count < THI_REPORT_INPUTS && json_array_size(ranked) == 0; i++) {
        shown[count++] = i;
    }
    return count;
}

/* A level behind the others stands for all other values. */
double thi_input_value(const thi_encoder *encoder, int input, const double *x)
{
    const thi_input *own = &encoder->input[input];
    int first = own->first, levels = own->levels + own->others, best = 0;
    if (levels == 0) {
        return encoder->center[first] + encoder->scale[first] * x[first];
    }
    for (int l = 1; l < levels; l++) {
        best = x[first + l] > x[first + best] ? l : best;
    }
    return best;
}

void thi_input_place(const thi_encoder *encoder, int input, double value, double *x)
{
    const thi_input *own = &encoder->input[input];
    int first = own->first, levels = own->levels + own->others;
    memset(x + first, 0, (size_t)thi_input_width(own) * sizeof *x);
    if (levels == 0) {
        x[first] = (value - encoder->center[first]) / encoder->scale[first];
    } else {
        x[first + (int)value] = 1.0;
    }
}
