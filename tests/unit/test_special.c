/*
 * The special functions against values computed with 60 to 900 digits, and by identities; the vector forms of the
 * logistic function against long doubles.
 */
#include "testing.h"

#include "likelihood/special.h"
#include "linalg/vector.h"

static void normal_tails(void **state)
{
    (void)state;
    /* x, log Phi, phi/Phi, x + phi/Phi */
    const double rows[][4] = {
        {-300.0, -45006.622732118663, 300.00333325926337, 3.3332592633741473e-3},
        {-40.0, -804.60844201375379, 40.024968847207264, 0.024968847207263723},
        {-6.5, -23.938149495161839, 6.6473013611904907, 0.14730136119049069},
        {-5.5, -17.779376352625261, 5.6714103138973056, 0.17141031389730562},
        {-1.0, -1.8410216450092635, 1.5251352761609812, 0.52513527616098121},
        {0.0, -0.69314718055994531, 0.79788456080286536, 0.79788456080286536},
        {8.0, -6.2209605742717861e-16, 5.0522710835368954e-15, 8.0000000000000051},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        double x = rows[i][0];
        assert_near(thi_log_phi(x), rows[i][1], 3e-14, 0);
        assert_near(thi_mills(x), rows[i][2], 3e-14, 0);
        assert_near(thi_mills_excess(x), rows[i][3], 3e-14, 0);
    }
    assert_near(thi_log_phi(-1e150), -0.5e300, 1e-15, 0);
    assert_near(thi_mills(-1e150), 1e150, 1e-15, 0);
    assert_true(thi_log_phi(INFINITY) == 0 && thi_mills(1e150) == 0);
}

/* erfcx(x) = exp(x^2) erfc(x), continuous where its two forms meet. */
static void scaled_erfc(void **state)
{
    (void)state;
    assert_near(thi_erfcx(0), 1, 0, 0);
    assert_near(thi_erfcx(-1), exp(1) * erfc(-1), 1e-15, 0);
    assert_near(thi_erfcx(nextafter(25, 0)), thi_erfcx(25), 2e-15, 0);
    assert_near(thi_erfcx(1e200), 1e-200 / sqrt(M_PI), 1e-15, 0);
}

static void normal_intervals(void **state)
{
    (void)state;
    /* a, b, log(Phi(b) - Phi(a)), phi(a)/(...), phi(b)/(...) */
    const double rows[][5] = {
        {-1.0, 2.0, -0.20016629432446258, 0.29559286165003364, 0.065955682558704667},
        {-0.25, 0.5, -1.2372925013224502, 1.3325627503148145, 1.2133121913507139},
        {3.0, 3.5, -6.7968680066834328, 3.9666800027389826, 0.78108560433831012},
        {-40.0, -39.0, -765.08315656437754, 2.7334909240424957e-16, 39.025607419930109},
        {20.0, 1000.0, -203.91715537109726, 20.049753068527851, 0},
        {-7.0, -6.9999999990686774, -46.213353946743403, 1.0737418205e+9, 1.0737418275e+9},
        {-10.0, 30.0, -7.6198530241605261e-24, 7.6945986267064193e-23, 1.4736461348785475e-196},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const double *row = rows[i];
        double at_a, at_b;
        assert_near(thi_phi_between(row[0], row[1], &at_a, &at_b), row[2], 1e-13, 0);
        assert_near(at_a, row[3], 1e-13, 0);
        assert_near(at_b, row[4], 1e-13, 0);
        assert_near(thi_phi_between(-row[1], -row[0], &at_b, &at_a), row[2], 1e-13, 0);
        assert_near(at_a, row[3], 1e-13, 0);
    }
    assert_true(thi_log_phi_between(1, 1) == -INFINITY && thi_log_phi_between(-INFINITY, INFINITY) == 0);
    assert_near(thi_log_phi_between(-INFINITY, -3), thi_log_phi(-3), 1e-15, 0);
    assert_near(thi_log_phi_between(3, INFINITY), thi_log_phi(-3), 1e-15, 0);
}

/* Plain where nothing overflows; both forms meet at z = k. */
static void tilted_integrals(void **state)
{
    (void)state;
    for (double z = -5; z <= 5; z += 0.5) {
        for (double k = 0; k <= 4; k += 0.5) {
            double plain = 0.5 * k * k - k * z + log(0.5 * erfc((k - z) / sqrt(2)));
            assert_near(thi_log_phi_tilted(z, k), plain, 1e-13, 1e-14);
        }
    }
    assert_near(thi_log_phi_tilted(0, 1e8), -log(1e8 * sqrt(2 * M_PI)), 1e-14, 0);
}

static void gamma_functions(void **state)
{
    (void)state;
    const double rows[][3] = {{0.001, -1000.5755719318103, 1.0000016425331958e+6},
                              {0.5, -1.9635100260214235, 4.9348022005446793},
                              {1.4616321449683622, -9.2412655217294275e-17, 0.96767224544762125},
                              {9.5, 2.1977378764029495, 0.11099728846909903},
                              {1000000.0, 13.815510057964191, 1.0000005000001667e-6}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        assert_near(thi_digamma(rows[i][0]), rows[i][1], 1e-15, 2e-15);
        assert_near(thi_trigamma(rows[i][0]), rows[i][2], 2e-15, 0);
    }
    assert_near(thi_lgamma(11), log(3628800), 1e-15, 0);
}

static void logistic_functions(void **state)
{
    (void)state;
    for (double x = -800; x <= 800; x += 12.5) {
        assert_near(thi_log1pexp(x) - thi_log1pexp(-x), x, 1e-15, 1e-15);
        assert_near(thi_log_sigmoid(x), -thi_log1pexp(-x), 0, 0);
        assert_near(thi_sigmoid(x) + thi_sigmoid(-x), 1, 0, 3e-16);
    }
    assert_near(thi_log_add(-INFINITY, 3), 3, 0, 0);
    assert_true(thi_log_add(-INFINITY, -INFINITY) == -INFINITY);
    assert_near(thi_log_add(1e300, 1), 1e300, 0, 0);
    assert_near(thi_log_add(-1000, -1001), -1000 + log1p(exp(-1)), 1e-15, 0);
}

extern const thi_vector_ops thi_vector_portable;

/* The best set and the portable one, at lengths that leave every tail. */
static void logistic_vectors(void **state)
{
    (void)state;
    enum { N = 301 };
    const thi_vector_ops *sets[2] = {thi_vector(), &thi_vector_portable};
    double x[N], y[N], dy[N];
    for (int i = 0; i < N; i++) {
        x[i] = i < 20 ? 100.0 * (i - 10) : 12 * thi_random_normal((thi_stream){1, 1, 1}, (uint64_t)i);
    }
    for (int s = 0; s < 2; s++) {
        for (int n = 0; n <= N; n += n < 20 ? 1 : N - 20) {
            sets[s]->log_sigmoid(n, x, y);
            for (int i = 0; i < n; i++) {
                long double want = -log1pl(expl(-(long double)x[i]));
                assert_near(y[i], (double)(x[i] < -700 ? x[i] : want), 5e-16, 1e-300);
            }
            sets[s]->sigmoid(n, x, y, dy);
            for (int i = 0; i < n; i++) {
                long double want = 1 / (1 + expl(-(long double)x[i]));
                assert_near(y[i], (double)want, 1e-15, 1e-300);
                assert_near(dy[i], (double)(want / (1 + expl((long double)x[i]))), 1e-15, 1e-300);
            }
        }
        double odd[3] = {INFINITY, -INFINITY, NAN};
        sets[s]->log_sigmoid(3, odd, y);
        assert_true(y[0] == 0 && y[1] == -INFINITY && isnan(y[2]));
    }
}

/* Against the formula, at lengths that leave every tail. */
static void polar_vectors(void **state)
{
    (void)state;
    enum { N = 53 };
    const thi_vector_ops *sets[2] = {thi_vector(), &thi_vector_portable};
    double u[N], v[N], x[N], y[N];
    for (int i = 0; i < N; i++) {
        u[i] = i == 0 ? 0x1p-54 : thi_random_uniform((thi_stream){1, 1, 2}, (uint64_t)i);
        v[i] = thi_random_uniform((thi_stream){1, 1, 3}, (uint64_t)i);
    }
    for (int s = 0; s < 2; s++) {
        for (int n = 0; n <= N; n += n < 20 ? 1 : N - 20) {
            sets[s]->normals(n, u, v, x, y);
            for (int i = 0; i < n; i++) {
                double radius = sqrt(-2 * log(u[i])), turn = 2 * M_PI * v[i];
                assert_near(x[i], radius * cos(turn), 0, 1e-14);
                assert_near(y[i], radius * sin(turn), 0, 1e-14);
            }
        }
    }
}

/* Against the scalar ones, which erfcx makes accurate in the left tail. */
static void normal_vectors(void **state)
{
    (void)state;
    enum { N = 203 };
    const thi_vector_ops *sets[2] = {thi_vector(), &thi_vector_portable};
    double x[N], y[N], m[N], excess[N];
    for (int i = 0; i < N; i++) {
        x[i] = -40.0 + 60.0 * i / N;
    }
    x[0] = -1e8;
    for (int s = 0; s < 2; s++) {
        for (int n = 0; n <= N; n += n < 20 ? 1 : N - 20) {
            sets[s]->log_phi(n, x, y);
            sets[s]->mills(n, x, m, excess);
            for (int i = 0; i < n; i++) {
                assert_near(y[i], thi_log_phi(x[i]), 1e-15, 0);
                assert_near(m[i], thi_mills(x[i]), 1e-14, 0);
                assert_near(excess[i], thi_mills_excess(x[i]), 3e-13, 0);
            }
        }
        double odd[3] = {INFINITY, -INFINITY, NAN};
        sets[s]->log_phi(3, odd, y);
        assert_true(y[0] == 0 && y[1] == -INFINITY && isnan(y[2]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(normal_tails),     cmocka_unit_test(scaled_erfc),     cmocka_unit_test(normal_intervals),
        cmocka_unit_test(tilted_integrals), cmocka_unit_test(gamma_functions), cmocka_unit_test(logistic_functions),
        cmocka_unit_test(logistic_vectors), cmocka_unit_test(polar_vectors),   cmocka_unit_test(normal_vectors),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
