/* The loops of the kernels' profiles: against their scalar formulas, and their derivatives against differences. */
#include "testing.h"

#include "base/base.h"
#include "kernel/profile_formulas.h"

extern const thi_profile_ops thi_profiles_portable;

enum { N = 37 };
static const thi_profile_args args = {1.7, 0.6, 3};

static void take_arguments(double *t)
{
    for (int i = 0; i < N; i++) {
        t[i] = i == 0 ? 0.0 : exp(6.0 * thi_random_uniform((thi_stream){1, 1, 1}, (uint64_t)i) - 4.0);
    }
}

/* At lengths that leave every tail. */
static void test_derivatives(void **state)
{
    (void)state;
    const thi_profile_ops *sets[2] = {thi_profiles(), &thi_profiles_portable};
    double t[N], y[N], k[N], dk[N], dshape[N], h = 1e-6;
    thi_profile_args up = {args.scale, args.shape * (1 + h), args.degree};
    thi_profile_args down = {args.scale, args.shape * (1 - h), args.degree};
    take_arguments(t);
    for (int s = 0; s < 2; s++) {
        for (int at = 0; at <= N * THI_PROFILE_COUNT; at++) {
            int n = at / THI_PROFILE_COUNT, p = at % THI_PROFILE_COUNT;
            sets[s]->fill[p](n, args, t, y);
            sets[s]->adjoint[p](n, args, t, k, dk, dshape);
            assert_memory_equal(y, k, (size_t)n * sizeof *y);
            for (int i = 1; i < n; i++) {
                double moved[2] = {t[i] * (1 + h), t[i] * (1 - h)}, value[2];
                sets[s]->fill[p](2, args, moved, value);
                assert_near(dk[i] * t[i], (value[0] - value[1]) / (2 * h), 1e-7, 1e-8);
                sets[s]->fill[p](1, up, t + i, value);
                sets[s]->fill[p](1, down, t + i, value + 1);
                assert_near(dshape[i], (value[0] - value[1]) / (2 * h), 1e-7, 1e-8);
            }
        }
    }
}

typedef thi_jet (*formula_fn)(double t, const thi_profile_args *args);
static const formula_fn formula[THI_PROFILE_COUNT] = {
    thi_profile_se, thi_profile_matern12, thi_profile_matern32,   thi_profile_matern52,
    thi_profile_rq, thi_profile_linear,   thi_profile_polynomial, thi_profile_one,
};

/* SLEEF's functions are within 1 ulp, as those of the C library; (over - logb) of the rational quadratic cancels. */
static void test_scalars(void **state)
{
    (void)state;
    const thi_profile_ops *sets[2] = {thi_profiles(), &thi_profiles_portable};
    double t[N], k[N], dk[N], dshape[N];
    take_arguments(t);
    t[1] = 1e300;
    for (int s = 0; s < 2; s++) {
        for (int p = 0; p < THI_PROFILE_COUNT; p++) {
            sets[s]->adjoint[p](N, args, t, k, dk, dshape);
            for (int i = 0; i < N; i++) {
                thi_jet jet = formula[p](t[i], &args);
                assert_true(k[i] == jet.k || fabs(k[i] - jet.k) <= 2e-15 * fabs(jet.k));
                assert_true(dk[i] == jet.dk || fabs(dk[i] - jet.dk) <= 2e-15 * fabs(jet.dk));
                assert_true(dshape[i] == jet.dshape ||
                            fabs(dshape[i] - jet.dshape) <= 1e-14 * fabs(jet.dshape) + 1e-16);
            }
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_derivatives), cmocka_unit_test(test_scalars)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
