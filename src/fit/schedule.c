/* The gaps between two times of learning, and what a change looks like. See schedule.h. */
#include "fit/schedule.h"

#include <math.h>

/* Of the rows of a regime, the share that is waited for, within limits. */
static const double SHARE = 0.5;
enum { LEAST_GAP = 1024, MOST_GAP = 65536 };
/* Standard errors of a batch's mean loss, of whose rows each varies by about a nat. */
static const double CHANGED = 5.0;
/* Rows that the running mean is of, about. */
static const double MEMORY = 16384.0;

void thi_schedule_begin(thi_schedule *s, int64_t rows, int64_t begun, int64_t last)
{
    *s = (thi_schedule){.rows = rows, .begun = begun, .last = last, .loss = NAN};
}

bool thi_schedule_batch(thi_schedule *s, int64_t n, double loss)
{
    bool known = !isnan(s->loss) && !isnan(loss);
    bool changed = known && fabs(loss - s->loss) > CHANGED / sqrt((double)n);
    double weight = fmax((double)n / MEMORY, (double)n / (double)(s->rows + n - s->last));
    if (changed) {
        s->begun = s->rows;
        s->loss = NAN; /* until parameters suit the rows again there is nothing to compare with */
    } else if (known) {
        s->loss += fmin(weight, 1.0) * (loss - s->loss);
    } else if (s->rows == s->last) {
        s->loss = loss;
    }
    s->rows += n;
    return changed;
}

bool thi_schedule_due(const thi_schedule *s)
{
    double gap = fmin(fmax(SHARE * (double)(s->rows - s->begun), LEAST_GAP), MOST_GAP);
    int64_t since = s->rows - thi_most(s->last, s->begun);
    return (double)since >= gap;
}

void thi_schedule_done(thi_schedule *s)
{
    s->last = s->rows;
    s->loss = NAN;
}
