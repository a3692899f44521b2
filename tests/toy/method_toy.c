/* A method that was not there: exact regression from the first rows of a table, all it takes to add one. */
#include "model/methods.h"
#include "model/specify.h"

enum { ROWS = 50, ITERATIONS = 20 };

static thiele_status run(thi_fitting *f, const thi_rows *rows, bool learn, thi_fitted *fitted)
{
    thi_rows first = *rows;
    thi_problem problem = thi_fitting_problem(f, NULL);
    thi_fit_settings settings = {.iterations = ITERATIONS};
    first.n = rows->n < ROWS ? rows->n : ROWS;
    return learn ? thi_search(&problem, f->method->objective, &first, &settings, &f->result, fitted)
                 : thi_freeze(f->ctx, f->method->objective, &f->spec, &first, fitted);
}

const thi_method thi_method_toy = {.name = "toy",
                                   .words = "exact regression of the first rows",
                                   .can = THI_CAN_JOINT,
                                   .evidence = "log_marginal_likelihood",
                                   .objective = &thi_objective_exact,
                                   .run = run};
