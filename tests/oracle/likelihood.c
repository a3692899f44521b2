/*
 * likelihood_*: expectations of log p with their derivatives in mean, variance and parameters, predictive moments,
 * class probabilities and log predictive densities, each by the method that the library chooses. The likelihood of a
 * case becomes text for thiele_likelihood_parse:
 *   {"name": "student_t", "nu": 3.5, "scale": 0.5}  ->  student-t(nu~3.5, scale~0.5)
 */
#include "oracle.h"

#include <string.h>

#include "expect/expect.h"

static const struct {
    const char *theirs, *ours;
} names[] = {
    {"bernoulli_logit", "bernoulli"}, {"bernoulli_probit", "bernoulli-probit"},
    {"student_t", "student-t"},       {"bayesian_svm", "svm"},
    {"ordinal_probit", "ordinal"},    {"negative_binomial", "negative-binomial"},
};

static thiele_status add_value(oracle_case *c, const json_t *json, const char *field, thi_text *text)
{
    double number = 0;
    const char *name = strcmp(field, "cutpoints") == 0 ? "cuts" : strcmp(field, "Qf") == 0 ? "nodes" : field;
    if (json_is_number(json_object_get(json, field))) {
        thiele_status status = oracle_read_number(c, json, field, &number);
        thi_text_add(text, "%s%c%.17g", name, strcmp(name, "nodes") == 0 ? '=' : '~', number);
        return status;
    }
    thi_matrix list = {0};
    thiele_status status = oracle_read(c, json, field, ORACLE_VECTOR, &list);
    thi_text_add(text, "%s~", name);
    for (int64_t i = 0; i < list.rows && status == THIELE_OK; i++) {
        thi_text_add(text, "%s%.17g", i == 0 ? "[" : ",", list.data[i]);
    }
    thi_text_add(text, "]");
    thi_free(list.data);
    return status;
}

/* The number of classes: as given, or one more than cut points. */
static int class_count(const json_t *json)
{
    size_t cuts = json_array_size(json_object_get(json, "cutpoints"));
    return cuts > 0 ? (int)cuts + 1 : (int)json_number_value(json_object_get(json, "classes"));
}

thiele_status oracle_read_likelihood(oracle_case *c, json_t *json, thiele_likelihood **out)
{
    const char *name = NULL, *field, *separator = "(";
    char *text = NULL;
    json_t *value;
    thi_text buffer;
    thi_text_init(&buffer, c->ctx);
    thiele_status status = THIELE_OK;
    *out = NULL;
    THI_TRY(oracle_read_string(c, json, "name", &name));
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        name = strcmp(name, names[i].theirs) == 0 ? names[i].ours : name;
    }
    thi_text_add(&buffer, "%s", name);
    json_object_foreach(json, field, value)
    {
        if (strcmp(field, "name") != 0 && strcmp(field, "classes") != 0 && strcmp(field, "P") != 0) {
            thi_text_add(&buffer, "%s", separator);
            THI_TRY(add_value(c, json, field, &buffer));
            separator = ", ";
        }
    }
    thi_text_add(&buffer, "%s", separator[0] == '(' ? "" : ")");
    THI_TRY(thi_text_take(&buffer, &text));
    int outputs = json_object_get(json, "P") == NULL ? 1 : (int)json_number_value(json_object_get(json, "P"));
    THI_TRY(thiele_likelihood_parse(out, c->ctx, text, outputs, class_count(json)));
out:
    thi_text_clear(&buffer);
    thi_free(text);
    return status;
}

/* What is computed for the rows of a case; E and the log densities are 1 x n, the others latents, outputs or classes x
 * n.
 */
typedef struct answers {
    thi_matrix E, g, h, dphi, mean, variance, density;
} answers;

static thiele_status answers_alloc(oracle_case *c, const thiele_likelihood *lik, int64_t n, answers *a)
{
    int64_t P = thiele_likelihood_outputs(lik), Q = thiele_likelihood_latents(lik);
    int64_t p = thiele_likelihood_parameters(lik);
    const struct {
        thi_matrix *matrix;
        int64_t rows;
    } rows[] = {{&a->E, 1},    {&a->g, Q},        {&a->h, Q},      {&a->dphi, p > 0 ? p : 1},
                {&a->mean, P}, {&a->variance, P}, {&a->density, 1}};
    thiele_status status = THIELE_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == THIELE_OK; i++) {
        status = thi_matrix_alloc(rows[i].matrix, c->ctx, rows[i].rows, n);
    }
    return status;
}

static void answers_clear(answers *a)
{
    double *const data[] = {a->E.data,    a->g.data,        a->h.data,      a->dphi.data,
                            a->mean.data, a->variance.data, a->density.data};
    for (size_t i = 0; i < sizeof data / sizeof *data; i++) {
        thi_free(data[i]);
    }
}

/* A matrix with one row is a list in the file. */
static thiele_status check_rows(oracle_case *c, const char *field, thi_matrix got)
{
    if (json_object_get(c->expected, field) == NULL) {
        return THIELE_OK;
    }
    if (got.rows == 1) {
        return oracle_check(c, field, ORACLE_VECTOR, thi_matrix_view(got.data, got.cols, 1, got.cols));
    }
    return oracle_check(c, field, ORACLE_ROWS, got);
}

/* Noises of outputs (noise1, noise2, ...) that the case has as one: their slopes add up. */
static thiele_status check_shared_noise(oracle_case *c, const thiele_likelihood *lik, thi_matrix dphi)
{
    static const char field[] = "dE_dlog_noise";
    thi_matrix sum = {0};
    int found = 0;
    if (json_object_get(c->expected, field) == NULL) {
        return THIELE_OK;
    }
    thiele_status status = thi_matrix_alloc(&sum, c->ctx, 1, dphi.cols);
    for (int p = 0; p < thiele_likelihood_parameters(lik) && status == THIELE_OK; p++) {
        const char *name = thiele_likelihood_parameter_name(lik, p);
        bool one = strncmp(name, "noise", 5) == 0 && name[5] != '\0';
        found += one;
        for (int64_t i = 0; i < dphi.cols && one; i++) {
            sum.data[i] += dphi.data[p + i * dphi.rows];
        }
    }
    if (status == THIELE_OK && found > 0) {
        status = check_rows(c, field, sum);
    }
    thi_free(sum.data);
    return status;
}

static thiele_status check_parameters(oracle_case *c, const thiele_likelihood *lik, thi_matrix dphi)
{
    thiele_status status = check_shared_noise(c, lik, dphi);
    for (int p = 0; p < thiele_likelihood_parameters(lik) && status == THIELE_OK; p++) {
        char field[80];
        thi_matrix one = {0};
        snprintf(field, sizeof field, "dE_dlog_%s", thiele_likelihood_parameter_name(lik, p));
        if (json_object_get(c->expected, field) == NULL) {
            continue;
        }
        status = thi_matrix_alloc(&one, c->ctx, 1, dphi.cols);
        for (int64_t i = 0; i < dphi.cols && status == THIELE_OK; i++) {
            one.data[i] = dphi.data[p + i * dphi.rows];
        }
        status = status == THIELE_OK ? check_rows(c, field, one) : status;
        thi_free(one.data);
    }
    return status;
}

static thiele_status check_probabilities(oracle_case *c, const thiele_likelihood *lik, thi_matrix m, thi_matrix v)
{
    thi_matrix probability = {0};
    thi_expect expect = {0};
    thiele_status status = THIELE_OK;
    if (json_object_get(c->expected, "pred_prob") == NULL) {
        return THIELE_OK;
    }
    THI_TRY(thi_matrix_alloc(&probability, c->ctx, lik->classes, m.cols));
    THI_TRY(thi_expect_open(&expect, c->ctx, lik, NULL));
    THI_TRY(thi_probabilities_block(&expect, c->ctx, m.cols, m.data, v.data, probability.data));
    THI_TRY(oracle_check(c, "pred_prob", ORACLE_ROWS, probability));
out:
    thi_expect_close(&expect);
    thi_free(probability.data);
    return status;
}

/* m, v: Q x n; y: P x n */
static thiele_status compute(oracle_case *c, const thiele_likelihood *lik, thi_matrix y, thi_matrix m, thi_matrix v,
                             answers *a)
{
    thiele_status status = THIELE_OK;
    THI_TRY(answers_alloc(c, lik, m.cols, a));
    THI_TRY(thiele_likelihood_expect(lik, c->ctx, NULL, m.cols, y.data, m.data, v.data, a->E.data, a->g.data, a->h.data,
                                     a->dphi.data));
    if (json_object_get(c->expected, "pred_mean") != NULL) {
        THI_TRY(thiele_likelihood_predict(lik, c->ctx, m.cols, m.data, v.data, a->mean.data, a->variance.data));
    }
    THI_TRY(thiele_likelihood_log_predictive(lik, c->ctx, m.cols, y.data, m.data, v.data, a->density.data));
out:
    return status;
}

/* A list of n numbers as 1 x n, a list of n lists of m as m x n. */
static thiele_status read_rows(oracle_case *c, const char *field, thi_matrix *out)
{
    bool nested = json_is_array(json_array_get(json_object_get(c->inputs, field), 0));
    thiele_status status = oracle_read(c, c->inputs, field, nested ? ORACLE_ROWS : ORACLE_VECTOR, out);
    if (!nested) {
        *out = thi_matrix_view(out->data, 1, out->rows, 1);
    }
    return status;
}

static thiele_status check_table(oracle_case *c)
{
    thi_matrix m = {0}, v = {0}, y = {0};
    thiele_likelihood *lik = NULL;
    answers a = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read_likelihood(c, json_object_get(c->inputs, "likelihood"), &lik));
    THI_TRY(read_rows(c, "m", &m));
    THI_TRY(read_rows(c, "v", &v));
    THI_TRY(read_rows(c, "y", &y));
    THI_TRY(oracle_expect_shape(c, "m", m, thiele_likelihood_latents(lik), y.cols));
    THI_TRY(oracle_expect_shape(c, "v", v, m.rows, m.cols));
    THI_TRY(oracle_expect_shape(c, "y", y, thiele_likelihood_outputs(lik), y.cols));
    THI_TRY(compute(c, lik, y, m, v, &a));
    THI_TRY(check_rows(c, "E", a.E));
    THI_TRY(check_rows(c, "dE_dm", a.g));
    THI_TRY(check_rows(c, "dE_dv", a.h));
    THI_TRY(check_rows(c, "pred_mean", a.mean));
    THI_TRY(check_rows(c, "pred_var", a.variance));
    THI_TRY(check_rows(c, "log_pred_density", a.density));
    THI_TRY(check_parameters(c, lik, a.dphi));
    THI_TRY(check_probabilities(c, lik, m, v));
out:
    answers_clear(&a);
    thiele_likelihood_destroy(lik);
    thi_free(m.data);
    thi_free(v.data);
    thi_free(y.data);
    return status;
}

/* One item of likelihood_extremes: a likelihood of its own, one row. */
static thiele_status compute_item(oracle_case *c, json_t *item, int64_t i, answers *all)
{
    double y = 0, m = 0, v = 0;
    thiele_likelihood *lik = NULL;
    answers a = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(oracle_read_number(c, item, "y", &y));
    THI_TRY(oracle_read_number(c, item, "m", &m));
    THI_TRY(oracle_read_number(c, item, "v", &v));
    THI_TRY(oracle_read_likelihood(c, json_object_get(item, "likelihood"), &lik));
    THI_TRY(
        compute(c, lik, thi_matrix_view(&y, 1, 1, 1), thi_matrix_view(&m, 1, 1, 1), thi_matrix_view(&v, 1, 1, 1), &a));
    all->E.data[i] = a.E.data[0];
    all->g.data[i] = a.g.data[0];
    all->h.data[i] = a.h.data[0];
    all->density.data[i] = a.density.data[0];
out:
    answers_clear(&a);
    thiele_likelihood_destroy(lik);
    return status == THIELE_OK ? status : thi_fail_in(c->ctx, status, "item %lld", (long long)i);
}

static thiele_status check_items(oracle_case *c, json_t *items)
{
    int64_t n = (int64_t)json_array_size(items);
    answers all = {0};
    thiele_status status = THIELE_OK;
    THI_TRY(thi_matrix_alloc(&all.E, c->ctx, 1, n));
    THI_TRY(thi_matrix_alloc(&all.g, c->ctx, 1, n));
    THI_TRY(thi_matrix_alloc(&all.h, c->ctx, 1, n));
    THI_TRY(thi_matrix_alloc(&all.density, c->ctx, 1, n));
    for (int64_t i = 0; i < n; i++) {
        THI_TRY(compute_item(c, json_array_get(items, (size_t)i), i, &all));
    }
    THI_TRY(check_rows(c, "E", all.E));
    THI_TRY(check_rows(c, "dE_dm", all.g));
    THI_TRY(check_rows(c, "dE_dv", all.h));
    THI_TRY(check_rows(c, "log_pred_density", all.density));
out:
    answers_clear(&all);
    return status;
}

thiele_status oracle_likelihood(oracle_case *c)
{
    json_t *items = json_object_get(c->inputs, "items");
    return items == NULL ? check_table(c) : check_items(c, items);
}
