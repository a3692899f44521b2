/* Moments in bins of log r: see spread.h. */
#include "fit/spread.h"

#include <math.h>

static const double WIDTH = 1.0 / 32.0, LOWEST = -64.0; /* log of the smallest number that is told from 0 */

static double centre_of(int bin)
{
    return exp(LOWEST + (bin + 0.5) * WIDTH);
}

void thi_spread_add(thi_spread *spread, int64_t n, const double *r)
{
    for (int64_t i = 0; i < n; i++) {
        double place = r[i] > 0.0 ? floor((log(r[i]) - LOWEST) / WIDTH) : -1.0;
        if (place >= 0.0) {
            int bin = (int)fmin(place, THI_SPREAD_BINS - 1);
            double off = r[i] / centre_of(bin) - 1.0;
            spread->bin[bin].count += 1.0;
            spread->bin[bin].first += off;
            spread->bin[bin].second += off * off;
            spread->sum += r[i];
        }
    }
}

/* log(1 + r/s2) = log(1 + x) + p d - (p d)^2/2 + ...,  x = centre/s2, p = x/(1 + x), d = r/centre - 1 */
double thi_spread_logs(const thi_spread *spread, double s2)
{
    double sum = 0.0;
    for (int b = 0; b < THI_SPREAD_BINS; b++) {
        double x = centre_of(b) / s2, p = x / (1.0 + x);
        if (spread->bin[b].count > 0.0) {
            sum += spread->bin[b].count * log1p(x) + p * (spread->bin[b].first - 0.5 * p * spread->bin[b].second);
        }
    }
    return sum;
}
