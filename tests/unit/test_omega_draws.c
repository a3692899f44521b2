/*
 * Draws of the auxiliary variables with fixed seeds: Kolmogorov-Smirnov against closed distribution functions (gamma,
 * inverse Gaussian) and against the inverted transform (Polya-Gamma, generalised inverse Gaussian), means and variances
 * against the cumulants of log phi, and the generic draw against the exact one. sqrt(n) times the distance is below 2.2
 * but once in 8000; moments lie within five standard errors.
 */
#include "testing_context.h"

#include "likelihood/augment.h"
#include "likelihood/incomplete.h"
#include "likelihood/inversion.h"
#include "likelihood/omega_draws.h"
#include "likelihood/plane.h"
#include "likelihood/special.h"

enum { DRAWS = 20000 };
static double drawn[DRAWS];

static int ascending(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

typedef double (*cdf_fn)(const void *arg, double x);

/* sqrt(n) times the largest distance; sorts the draws. */
static double distance(cdf_fn cdf, const void *arg, int n)
{
    double worst = 0;
    qsort(drawn, (size_t)n, sizeof *drawn, ascending);
    for (int i = 0; i < n; i++) {
        double F = cdf(arg, drawn[i]);
        worst = fmax(worst, fmax(F - (double)i / n, (i + 1.0) / n - F));
    }
    return worst * sqrt(n);
}

static double law_cdf(const void *law, double x)
{
    return thi_omega_law_cdf(law, x, NULL, NULL);
}

static void moments_agree(double mean, double variance, int n)
{
    double sum = 0, square = 0, fourth = 0;
    for (int i = 0; i < n; i++) {
        double rest = drawn[i] - mean;
        sum += rest / n;
        square += rest * rest / n;
        fourth += rest * rest * rest * rest / n;
    }
    assert_near(sum, 0, 0, 5 * sqrt(variance / n));
    assert_near(square, variance, 0, 5 * sqrt((fourth - square * square) / n));
}

/* --- inverse Gaussian, gamma ---------------------------------------------------------------------------------------*/

static double inverse_gaussian_cdf(const void *arg, double x)
{
    const double *p = arg;
    double a = sqrt(p[1] / x);
    return exp(thi_log_phi(a * (x * p[0] - 1))) + exp(2 * p[1] * p[0] + thi_log_phi(-a * (x * p[0] + 1)));
}

static void inverse_gaussian(void **state)
{
    (void)state;
    static const double cases[][2] = {{0, 0.5}, {1e-12, 3}, {1e-3, 0.5}, {0.6, 0.5}, {2, 40}, {5, 0.01}, {1e6, 0.5}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++) {
        for (int i = 0; i < DRAWS; i++) {
            thi_stream stream = {3, THI_RANDOM_DEMO, c};
            drawn[i] = thi_draw_inverse_gaussian(stream, (uint64_t)i * THI_OMEGA, cases[c][0], cases[c][1]);
            assert_true(drawn[i] > 0 && isfinite(drawn[i]));
        }
        assert_true(distance(inverse_gaussian_cdf, cases[c], DRAWS) < 2.2);
    }
}

static double gamma_cdf(const void *arg, double x)
{
    const double *p = arg;
    return thi_gamma_lower(p[0], p[1] * x);
}

static void gamma_draws(void **state)
{
    (void)state;
    static const double cases[][2] = {{0.6, 0.2}, {2.5, 4}, {50.5, 1e6}};
    for (size_t c = 0; c < 3; c++) {
        for (int i = 0; i < DRAWS; i++) {
            thi_stream stream = {4, THI_RANDOM_DEMO, c};
            drawn[i] = thi_draw_gamma(stream, (uint64_t)i * THI_OMEGA, cases[c][0], cases[c][1]);
        }
        assert_true(distance(gamma_cdf, cases[c], DRAWS) < 2.2);
    }
}

/* --- generalised inverse Gaussian: p = 1/2 is a known law, p = 3/2 is the Matern's --------------------------------*/

static void one_over(int n)
{
    for (int i = 0; i < n; i++) {
        drawn[i] = 1 / drawn[i];
    }
}

/* Of p = 1/2, 1/x is inverse Gaussian: x^(-3/2) exp(-a/x - b x) has 1/mean = sqrt(b/a), shape 2a. */
static void general_inverse_gaussian(void **state)
{
    (void)state;
    static const double ab[][2] = {{0.5, 0}, {0.5, 1e-10}, {0.7, 0.3}, {3, 3}, {1e-3, 5}, {200, 50}, {1e5, 1e9}};
    for (size_t c = 0; c < sizeof ab / sizeof ab[0]; c++) {
        double a = ab[c][0], b = ab[c][1];
        for (int i = 0; i < DRAWS; i++) {
            thi_stream stream = {5, THI_RANDOM_DEMO, c};
            drawn[i] = thi_draw_inverse_gaussian_general(stream, (uint64_t)i * THI_OMEGA, 0.5, a, b);
        }
        one_over(DRAWS);
        assert_true(distance(inverse_gaussian_cdf, (double[]){sqrt(b / a), 2 * a}, DRAWS) < 2.2);
    }
    for (int i = 0; i < DRAWS; i++) {
        drawn[i] =
            thi_draw_inverse_gaussian_general((thi_stream){5, THI_RANDOM_DEMO, 99}, (uint64_t)i * THI_OMEGA, 7.3, 2, 0);
    }
    assert_true(distance(gamma_cdf, (double[]){7.3, 2}, DRAWS) < 2.2);
}

/* --- Polya-Gamma ---------------------------------------------------------------------------------------------------*/

static double complex log_phi_polya_gamma(const void *b, double complex r)
{
    return -*(const double *)b * thi_plane_log_cosh(csqrt(0.5 * r));
}

static void polya_gamma(void **state)
{
    (void)state;
    static const double bc[][2] = {{1, 0},   {1, 0.3},  {1, -2.5},  {1, 3.2},   {1, 60},  {1, 1e6},
                                   {2, 1.5}, {17, 4},   {40, 0.1},  {0.3, 0.7}, {3.6, 2}, {200, 1},
                                   {201, 1}, {0.05, 1}, {0.5, 200}, {9.5, 30},  {2.5, 0}};
    for (size_t c = 0; c < sizeof bc / sizeof bc[0]; c++) {
        double b = bc[c][0], tilt = bc[c][1];
        int n = b == 1 || b != floor(b) ? DRAWS / 4 : DRAWS / 10;
        thi_omega_law law;
        thi_omega_law_open(&law, log_phi_polya_gamma, &b, 0.5 * tilt * tilt);
        for (int i = 0; i < n; i++) {
            thi_stream stream = {6, THI_RANDOM_DEMO, c};
            drawn[i] = thi_draw_polya_gamma(stream, (uint64_t)i * THI_OMEGA, b, tilt);
            assert_true(drawn[i] > 0 && isfinite(drawn[i]));
        }
        moments_agree(law.mean, law.sd * law.sd, n);
        assert_true(distance(law_cdf, &law, n) < 2.2);
    }
    assert_near(thi_draw_polya_gamma((thi_stream){1, 2, 3}, 0, 0, 1.5), 0, 0, 0);
}

/* --- many rows at once ---------------------------------------------------------------------------------------------*/

/* Each row's law, and whatever number of rows is asked for at once. */
static void rows_of_polya_gamma(void **state)
{
    (void)state;
    static const double tilts[] = {0, 0.3, -2.5, 3.2, 60, 1e6};
    enum { N = DRAWS / 4 };
    static double c[N];
    double b = 1;
    for (size_t k = 0; k < sizeof tilts / sizeof tilts[0]; k++) {
        thi_stream stream = {10, THI_RANDOM_DEMO, 0};
        thi_omega_law law;
        thi_omega_law_open(&law, log_phi_polya_gamma, &b, 0.5 * tilts[k] * tilts[k]);
        for (int i = 0; i < N; i++) {
            c[i] = tilts[k];
        }
        thi_draw_polya_gamma_rows(stream, k, N, c, drawn);
        double some[3];
        stream.row = 77;
        thi_draw_polya_gamma_rows(stream, k, 3, c, some);
        assert_memory_equal(some, drawn + 77, sizeof some);
        moments_agree(law.mean, law.sd * law.sd, N);
        assert_true(distance(law_cdf, &law, N) < 2.2);
    }
}

static void rows_of_inverse_gaussian(void **state)
{
    (void)state;
    static const double cases[][2] = {{0, 0.5}, {1e-3, 0.5}, {0.6, 0.5}, {2, 40}, {5, 0.01}, {1e6, 0.5}};
    static double over[DRAWS];
    for (size_t k = 0; k < sizeof cases / sizeof cases[0]; k++) {
        thi_stream stream = {11, THI_RANDOM_DEMO, 0};
        for (int i = 0; i < DRAWS; i++) {
            over[i] = cases[k][0];
        }
        thi_draw_inverse_gaussian_rows(stream, k, DRAWS, over, cases[k][1], drawn);
        double some[3];
        stream.row = 130;
        thi_draw_inverse_gaussian_rows(stream, k, 3, over, cases[k][1], some);
        assert_memory_equal(some, drawn + 130, sizeof some);
        assert_true(distance(inverse_gaussian_cdf, cases[k], DRAWS) < 2.2);
    }
}

/* Sums of exact draws against inversion of the whole: two ways to PG(6, 1.2). */
static void sums_agree_with_inversion(void **state)
{
    (void)state;
    thi_omega_law law;
    double b = 6;
    enum { N = 2000 };
    thi_omega_law_open(&law, log_phi_polya_gamma, &b, 0.5 * 1.2 * 1.2);
    for (int i = 0; i < N; i++) {
        drawn[i] = thi_omega_law_at(&law, thi_random_normal((thi_stream){7, THI_RANDOM_DEMO, 0}, (uint64_t)i));
    }
    moments_agree(law.mean, law.sd * law.sd, N);
    double inverted = distance(law_cdf, &law, N);
    for (int i = 0; i < N; i++) {
        drawn[i] = thi_draw_polya_gamma((thi_stream){7, THI_RANDOM_DEMO, 1}, (uint64_t)i * THI_OMEGA, b, 1.2);
    }
    assert_true(inverted < 2.2 && distance(law_cdf, &law, N) < 2.2);
}

/* --- through the forms ---------------------------------------------------------------------------------------------*/

typedef struct form_law {
    const thiele_likelihood *lik;
    double y, r;
} form_law;

static double complex form_log_phi(const void *arg, double complex r)
{
    const form_law *at = arg;
    return at->lik->ops->augmentation->form->log_phi(at->lik, at->y, r);
}

/* Each form's own draw against the inversion of its own transform, and against its moments. */
static void forms_draw_their_law(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        double y;
    } cases[] = {{"student-t(nu=3.9356, scale=0.5907)", 0.3},
                 {"laplace(beta=0.4145)", -2},
                 {"matern32(rho=0.8528)", 1},
                 {"bernoulli", -1},
                 {"svm", 1},
                 {"binomial(trials=7)", 3},
                 {"negative-binomial(r=2)", 5},
                 {"negative-binomial(r=2.5)", 5},
                 {"negative-binomial(r=0.4)", 0}};
    static const double tilts[] = {0, 1e-4, 0.09, 1, 6.25, 400, 1e10};
    enum { N = 2000 };
    for (size_t c = 0; c < sizeof cases / sizeof cases[0] * 7; c++) {
        thiele_likelihood *lik = NULL;
        assert_ok(ctx, thiele_likelihood_parse(&lik, ctx, cases[c / 7].text, 1, 0));
        form_law at = {lik, cases[c / 7].y, tilts[c % 7]};
        thi_omega omega;
        thi_omega_law law;
        thi_augmented_omega(lik, at.y, at.r, &omega);
        thi_omega_law_open(&law, form_log_phi, &at, at.r);
        for (int i = 0; i < N; i++) {
            drawn[i] = thi_augmented_omega_draw(lik, at.y, at.r, (thi_stream){8, THI_RANDOM_DEMO, c}, (uint64_t)i);
        }
        if (at.r > 0.01) { /* heavier tails have no fourth moment to speak of */
            moments_agree(omega.mean, omega.variance, N);
        }
        double worst = distance(law_cdf, &law, N);
        if (worst > 2.2) {
            fail_msg("%s at r = %g: distance %g", cases[c / 7].text, at.r, worst);
        }
        thiele_likelihood_destroy(lik);
    }
}

/* A draw reads its own indices only: its number says all. */
static void draws_stand_alone(void **state)
{
    (void)state;
    thi_stream stream = {9, THI_RANDOM_DEMO, 0};
    double first = thi_draw_polya_gamma(stream, 5 * THI_OMEGA, 3, 1);
    thi_draw_polya_gamma(stream, 4 * THI_OMEGA, 40, 1);
    assert_true(first == thi_draw_polya_gamma(stream, 5 * THI_OMEGA, 3, 1));
    assert_true(first != thi_draw_polya_gamma(stream, 6 * THI_OMEGA, 3, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(inverse_gaussian),          cmocka_unit_test(gamma_draws),
        cmocka_unit_test(general_inverse_gaussian),  cmocka_unit_test(polya_gamma),
        cmocka_unit_test(rows_of_polya_gamma),       cmocka_unit_test(rows_of_inverse_gaussian),
        cmocka_unit_test(sums_agree_with_inversion), cmocka_unit_test(forms_draw_their_law),
        cmocka_unit_test(draws_stand_alone),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
