/* A report on a model: whether to trust it, and what matters to it, as numbers and as one page; and a check of its
 * inference by simulation. */
#ifndef THIELE_REPORT_H
#define THIELE_REPORT_H

#include <thiele/model.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct thiele_report_options {
    size_t size;
    const char *target;  /* which of several; NULL: the first */
    const char *command; /* shown on the page as what made it; NULL: nothing is */
    const thiele_predict_options
        *predict; /* how rows are read and predicted (no quantiles, no draws); NULL: as usual */
} thiele_report_options;

#define THIELE_REPORT_OPTIONS_INIT THIELE_OPTIONS_INIT(thiele_report_options)

/*
 * table: rows with their targets that the model has not seen; NULL: the report is about the model alone. path: where
 * the page goes, one self-contained file of HTML below 1 MB that appears whole or not at all ("-": standard output;
 * NULL: none). json: all of its numbers as text, to be freed by thiele_free; docs/report.md lists the fields; may be
 * NULL. Beside the predictions of the table some seconds; 110 bytes per row and, of labels, 8 for each. The same model,
 * table and seed give the same bytes on any number of threads. Errors: ARGUMENT (no such target), DATA (fewer than ten
 * rows with the target), IO, and as thiele_model_score; UNSUPPORTED where the model's own likelihood is not attached.
 */
THIELE_API thiele_status thiele_model_report(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                             const thiele_report_options *options, const char *path, char **json);

typedef struct thiele_check_options {
    size_t size;
    const char *target;                    /* which of several models of a target each; NULL: the first */
    int64_t simulations;                   /* 0: 200; 20 to 100,000 */
    int64_t rows;                          /* of the table, drawn at random by the seed; 0: 50; 10 to 200 */
    const thiele_predict_options *predict; /* how rows are read; NULL: as usual */
} thiele_check_options;

#define THIELE_CHECK_OPTIONS_INIT THIELE_OPTIONS_INIT(thiele_check_options)

/*
 * Whether inference can be believed where the model is true: simulation-based calibration at the learned parameters
 * (docs/report.md). table: rows whose inputs are taken; NULL: those that the model holds. json: ranks as histograms,
 * what chance allows, and a verdict, to be freed by thiele_free. Errors: ARGUMENT (options, no such target), DATA
 * (fewer than ten rows), UNSUPPORTED (methods of inducing inputs or blocks, likelihoods that are not normalised, the
 * model's own likelihood is not attached), CANCELLED.
 */
THIELE_API thiele_status thiele_model_check(const thiele_model *model, thiele_context *ctx, const thiele_table *table,
                                            const thiele_check_options *options, char **json);

#ifdef __cplusplus
}
#endif
#endif
