/* diagnostics: R-hat, autocorrelation and effective draws of given chains. */
#include "oracle.h"

#include "fit/diagnostics.h"

/* The README's tau of a chain is n/ess. */
static thiele_status check_chains(oracle_case *c, int64_t n, thi_matrix lag1, thi_matrix ess)
{
    thiele_status status = oracle_check(c, "lag1_per_chain", ORACLE_VECTOR, lag1);
    if (status == THIELE_OK) {
        status = oracle_check(c, "ess_per_chain", ORACLE_VECTOR, ess);
    }
    for (int64_t j = 0; j < ess.rows; j++) {
        ess.data[j] = (double)n / ess.data[j];
    }
    return status == THIELE_OK ? oracle_check(c, "tau_per_chain", ORACLE_VECTOR, ess) : status;
}

static thiele_status check_all(oracle_case *c, double draws, const thi_diagnosis *d)
{
    const struct {
        const char *field;
        double got;
    } rows[] = {
        {"W", d->within},
        {"B", d->between},
        {"var_plus", d->pooled},
        {"V_hat", d->spread},
        {"rhat", d->rhat},
        {"rhat_without_sampling_term", d->rhat_plain},
        {"df", d->df},
        {"rhat_df_corrected", d->rhat_corrected},
        {"lag1", d->lag1},
        {"ess", d->ess},
        {"ess_multichain", d->ess_multichain},
        {"tau_multichain", draws / d->ess_multichain},
    };
    thiele_status status = THIELE_OK;
    for (size_t i = 0; i < sizeof rows / sizeof *rows && status == THIELE_OK; i++) {
        status = oracle_check_number(c, rows[i].field, rows[i].got);
    }
    return status;
}

thiele_status oracle_diagnostics(oracle_case *c)
{
    thi_matrix x = {0}, lag1 = {0}, ess = {0};
    thi_diagnosis d;
    thiele_status status;
    THI_TRY(oracle_read(c, c->inputs, "chains", ORACLE_ROWS, &x));
    if (x.rows < 4 || x.cols > THI_CHAINS_MAX) {
        status =
            thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'chains' must be at most %d of at least 4 draws", THI_CHAINS_MAX);
        goto out;
    }
    THI_TRY(thi_matrix_alloc(&lag1, c->ctx, x.cols, 1));
    THI_TRY(thi_matrix_alloc(&ess, c->ctx, x.cols, 1));
    thi_diagnose((int)x.cols, x.rows, x.data, &d, ess.data);
    for (int64_t j = 0; j < x.cols; j++) {
        lag1.data[j] = thi_autocorrelation(x.rows, x.data + j * x.rows, 1); /* of what are deviations by now */
    }
    THI_TRY(check_all(c, (double)(x.rows * x.cols), &d));
    THI_TRY(check_chains(c, x.rows, lag1, ess));
out:
    thi_free(x.data);
    thi_free(lag1.data);
    thi_free(ess.data);
    return status;
}
