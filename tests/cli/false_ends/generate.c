/*
 * Tables of the test of false ends, as CSV on standard output: `square`, `product`, `rough` or `waves`, and a seed.
 * Functions are draws of Gaussian processes with a squared-exponential kernel, by random Fourier features (Rahimi and
 * Recht 2007), but for waves; the numbers depend on the seed alone.
 */
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { FEATURES = 1000, MOST_INPUTS = 2 };

static uint64_t state;

/* In (0, 1): splitmix64 (Steele, Lea and Flood 2014). */
static double uniform(void)
{
    uint64_t z = state += UINT64_C(0x9e3779b97f4a7c15);
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return ((double)((z ^ (z >> 31)) >> 11) + 0.5) * 0x1p-53;
}

static double normal(void)
{
    double radius = sqrt(-2.0 * log(uniform()));
    return radius * cos(2.0 * M_PI * uniform());
}

typedef struct function {
    double frequency[FEATURES][MOST_INPUTS], phase[FEATURES];
} function;

static void draw(function *f, int inputs, const double *lengthscale)
{
    for (int i = 0; i < FEATURES; i++) {
        f->phase[i] = 2.0 * M_PI * uniform();
        for (int d = 0; d < inputs; d++) {
            f->frequency[i][d] = normal() / lengthscale[d];
        }
    }
}

static double at(const function *f, int inputs, const double *x)
{
    double sum = 0.0;
    for (int i = 0; i < FEATURES; i++) {
        double angle = f->phase[i];
        for (int d = 0; d < inputs; d++) {
            angle += f->frequency[i][d] * x[d];
        }
        sum += cos(angle);
    }
    return sqrt(2.0 / FEATURES) * sum;
}

static double input(void)
{
    return 6.0 * uniform() - 3.0;
}

/* y = f^2 + e, 200 rows */
static void square(void)
{
    static function f;
    draw(&f, 1, (const double[]){1.0});
    printf("x,y\n");
    for (int i = 0; i < 200; i++) {
        double x = input(), value = at(&f, 1, &x);
        printf("%.10g,%.10g\n", x, value * value + 0.1 * normal());
    }
}

/* y1 = f0 f1 + e, y2 = f0 f2 + e, 300 rows */
static void product(void)
{
    static function f[3];
    for (int q = 0; q < 3; q++) {
        draw(&f[q], 1, (const double[]){1.0});
    }
    printf("x,y1,y2\n");
    for (int i = 0; i < 300; i++) {
        double x = input(), f0 = at(&f[0], 1, &x);
        double y1 = f0 * at(&f[1], 1, &x) + 0.1 * normal(), y2 = f0 * at(&f[2], 1, &x) + 0.1 * normal();
        printf("%.10g,%.10g,%.10g\n", x, y1, y2);
    }
}

/* Functions that turn many times in their range, with little noise, 4,000 rows */
static void rough(void)
{
    static function f;
    draw(&f, 2, (const double[]){0.34, 0.59});
    printf("a,b,y\n");
    for (int i = 0; i < 4000; i++) {
        double x[2] = {input(), input()};
        printf("%.10g,%.10g,%.10g\n", x[0], x[1], at(&f, 2, x) + 0.1 * normal());
    }
}

static void waves(void)
{
    printf("a,b,y\n");
    for (int i = 0; i < 4000; i++) {
        double a = input(), b = input();
        printf("%.10g,%.10g,%.10g\n", a, b, sin(6.0 * a) * cos(4.0 * b) + 0.1 * normal());
    }
}

int main(int argc, char **argv)
{
    static const struct {
        const char *name;
        void (*write)(void);
    } tables[] = {{"square", square}, {"product", product}, {"rough", rough}, {"waves", waves}};
    state = argc > 2 ? strtoull(argv[2], NULL, 10) : 0;
    for (size_t i = 0; argc > 1 && i < sizeof tables / sizeof *tables; i++) {
        if (strcmp(argv[1], tables[i].name) == 0) {
            tables[i].write();
            return 0;
        }
    }
    fprintf(stderr, "usage: generate square|product|rough|waves [SEED]\n");
    return 2;
}
