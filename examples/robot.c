/*
 * Predictions inside a control loop: the torque that a pendulum with friction needs, learned from a few hundred
 * measurements, is asked for once a cycle with its uncertainty. A predictor is made once; a call allocates nothing and
 * takes microseconds, so that it fits a loop of a kilohertz and more.
 */
#include <math.h>
#include <stdio.h>
#include <thiele/thiele.h>
#include <time.h>

enum { ROWS = 500, COLUMNS = 4, CYCLES = 5000 };

/* angle, velocity, acceleration -> torque, in rad, rad/s, rad/s^2, N m */
static double torque(double q, double v, double a)
{
    return 0.8 * a + 4.9 * sin(q) + 0.6 * tanh(3.0 * v) + 0.1 * v;
}

static double seconds(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

int main(void)
{
    static const char *const names[] = {"angle", "velocity", "acceleration", "torque"};
    static double data[ROWS * COLUMNS];
    thiele_fit_options fit = {.size = sizeof fit, .columns.target = "torque", .model.method = "exact"};
    thiele_context *ctx = NULL;
    thiele_table *table = NULL;
    thiele_model *model = NULL;
    thiele_predictor *predictor = NULL;
    for (int i = 0; i < ROWS; i++) {
        double *row = data + i * COLUMNS;
        row[0] = 3.0 * sin(0.37 * i), row[1] = 2.0 * sin(0.59 * i + 1.0), row[2] = 5.0 * sin(0.83 * i + 2.0);
        row[3] = torque(row[0], row[1], row[2]) + 0.05 * sin(12.9898 * i * i);
    }
    if (thiele_context_create(&ctx, NULL) || thiele_table_from_rows(&table, ctx, ROWS, COLUMNS, data, names) ||
        thiele_model_fit(&model, ctx, table, &fit) ||
        thiele_predictor_open(&predictor, ctx, model, THIELE_PREDICT_LATENT)) {
        fprintf(stderr, "%s\n", thiele_context_message(ctx));
        return 1;
    }
    double square = 0.0, longest = 0.0, total = 0.0;
    for (int cycle = 0; cycle < CYCLES; cycle++) {
        double t = 0.001 * cycle, mean, variance;
        double x[] = {2.0 * sin(t), 2.0 * cos(t), -2.0 * sin(t)}; /* in the order of the model's input columns */
        double start = seconds();
        if (thiele_predictor_row(predictor, x, &mean, &variance)) {
            fprintf(stderr, "%s\n", thiele_predictor_message(predictor));
            return 1;
        }
        double taken = seconds() - start, error = mean - torque(x[0], x[1], x[2]);
        square += error * error;
        total += taken;
        longest = fmax(longest, taken);
    }
    printf("torque is off by %.3f N m; %.1f microseconds a cycle, %.1f at most\n", sqrt(square / CYCLES),
           1e6 * total / CYCLES, 1e6 * longest);
    thiele_predictor_destroy(predictor);
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
    return 0;
}
