/* The problems of the library's engines, and what all fixtures share. */
#include "engine_fixtures.h"

#include "posterior/decoupled.h"
#include "posterior/dense.h"
#include "posterior/variational.h"

double *fixture_numbers(int64_t n)
{
    double *numbers = calloc((size_t)n + 1, sizeof *numbers);
    assert_non_null(numbers);
    return numbers;
}

int64_t fixture_theta(const engine_problem *p, int group)
{
    int64_t first = 0;
    for (int g = 0; g < group; g++) {
        first += p->kernel[g]->parameters + FIXTURE_DIMS + 1;
    }
    return first;
}

int64_t fixture_mean(const engine_problem *p, int group)
{
    return fixture_theta(p, group) + p->kernel[group]->parameters;
}

int64_t fixture_begin(engine_problem *p, thiele_context *ctx, int64_t rows, int groups, int64_t more)
{
    static const char *const texts[FIXTURE_GROUPS] = {"se(ard, lengthscale~[1.1,0.8], variance~1.3)",
                                                      "matern52(lengthscale~0.9) + linear(variance~0.3)"};
    *p = (engine_problem){.latents = 1, .components = 1, .groups = groups, .n = rows, .any_rows = true};
    p->X = fixture_numbers(rows * FIXTURE_DIMS);
    p->y = fixture_numbers(rows);
    test_normals(rows * FIXTURE_DIMS, 1, p->X);
    test_normals(rows, 2, p->y);
    for (int64_t i = 0; i < rows; i++) {
        p->y[i] = sin(2.0 * p->X[i * FIXTURE_DIMS]) + 0.4 * p->X[i * FIXTURE_DIMS + 1] + 0.3 * p->y[i];
    }
    for (int g = 0; g < groups; g++) {
        assert_ok(ctx, thiele_kernel_parse(&p->kernel[g], ctx, texts[g], FIXTURE_DIMS, NULL));
    }
    int64_t first = fixture_theta(p, groups);
    p->numbers = first + more;
    p->x = fixture_numbers(p->numbers);
    p->bar = fixture_numbers(p->numbers);
    test_normals(p->numbers, 3, p->x);
    for (int g = 0; g < groups; g++) {
        memcpy(p->x + fixture_theta(p, g), p->kernel[g]->log_value, (size_t)p->kernel[g]->parameters * sizeof(double));
        p->prior[g] = (thi_prior){p->kernel[g], THI_MEAN_LINEAR, p->x + fixture_mean(p, g)};
    }
    return first;
}

/* --- exact: x ends with the log of the noise ---------------------------------------------------------------------- */

typedef struct exact_own {
    thi_exact_shape shape;
    thi_exact_bar bar;
    double noise;
} exact_own;

static void move_exact(engine_problem *p)
{
    exact_own *own = p->own;
    own->noise = exp(p->x[p->numbers - 1]);
}

static void open_exact(engine_problem *p, thiele_context *ctx, int variant, int size)
{
    static exact_own own;
    (void)variant;
    int64_t noise = fixture_begin(p, ctx, 12 * size, 1, 1);
    own.shape = (thi_exact_shape){p->n, 1, p->X, p->y, NULL};
    own.bar = (thi_exact_bar){p->bar, p->bar + fixture_mean(p, 0), p->bar + noise};
    p->x[noise] = log(0.2);
    p->any_rows = false;
    p->own = &own;
    p->shape = &own.shape;
    p->q = &own.noise;
    p->adjoints = &own.bar;
}

const engine_fixture fixture_exact = {.variants = 1, .open = open_exact, .move = move_exact};
const engine_fixture fixture_exact_device = {.variants = 1, .open = open_exact, .move = move_exact};

/* --- dense: sites that stay, all positive or some negative -------------------------------------------------------- */

typedef struct dense_own {
    thi_dense_shape shape;
    thi_dense_sites sites;
    thi_dense_bar bar;
    int negative; /* every so many-th site */
} dense_own;

static void move_dense(engine_problem *p)
{
    const dense_own *own = p->own;
    test_normals(p->n, 4, own->sites.nu);
    for (int64_t i = 0; i < p->n; i++) {
        own->sites.lambda[i] = own->negative > 0 && i % own->negative == 0 ? -0.01 : 0.5 + 0.1 * (double)(i % 7);
    }
}

static void open_dense(engine_problem *p, thiele_context *ctx, int variant, int size)
{
    static dense_own own;
    fixture_begin(p, ctx, 12 * size, 1, 0);
    own.shape = (thi_dense_shape){p->n, p->X, NULL, NULL};
    own.sites = (thi_dense_sites){fixture_numbers(p->n), fixture_numbers(p->n), true};
    own.bar = (thi_dense_bar){p->bar, p->bar + fixture_mean(p, 0)};
    own.negative = variant == 1 ? 6 : 0;
    p->any_rows = false;
    p->steps = true;
    p->own = &own;
    p->shape = &own.shape;
    p->q = &own.sites;
    p->adjoints = &own.bar;
}

static void close_dense(engine_problem *p)
{
    const dense_own *own = p->own;
    free(own->sites.lambda);
    free(own->sites.nu);
}

const engine_fixture fixture_dense = {.variants = 2, .open = open_dense, .move = move_dense, .close = close_dense};

/* --- variational: by sites, a full Gaussian, a mixture of diagonal ones of two latents, in u and in w ------------- */

enum { BY_SITES, FULL, MIXTURE, WHITE_MIXTURE, FAMILIES };

typedef struct variational_own {
    thi_shape shape;
    thi_variational_at at;
    thi_sites sites;
    thi_adjoints bar;
    const double *Z[FIXTURE_GROUPS];
    double *theta_bar[FIXTURE_GROUPS], *mean_bar[FIXTURE_GROUPS], *Z_bar[FIXTURE_GROUPS];
} variational_own;

/* The sites are given in u, which is the factor I, so that they stay the same there whatever the kernel becomes. */
static void move_variational(engine_problem *p)
{
    const variational_own *own = p->own;
    int64_t M = own->at.sites != NULL ? own->shape.inducing : 0;
    for (int64_t j = 0; j < M; j++) {
        own->sites.sum.t[j] = sin(1.0 + (double)j);
        for (int64_t i = 0; i < M; i++) {
            own->sites.L.data[i + j * M] = i == j;
            own->sites.sum.T.data[i + j * M] = i == j ? 2.0 + 0.1 * (double)(i % 5) : 0.2 / (double)(1 + i + j);
        }
    }
}

static thi_shape variational_shape(int variant, int size)
{
    bool mixture = variant >= MIXTURE;
    return (thi_shape){.latents = mixture ? 2 : 1,
                       .components = mixture ? 2 : 1,
                       .dims = FIXTURE_DIMS,
                       .inducing = 4 * size,
                       .capacity = 12 * size,
                       .diagonal = mixture,
                       .whitened = variant != MIXTURE,
                       .steps = variant == BY_SITES};
}

static void open_variational(engine_problem *p, thiele_context *ctx, int variant, int size)
{
    static variational_own own;
    thi_shape shape = variational_shape(variant, size);
    int64_t M = shape.inducing, q_size = variant == BY_SITES ? 0 : thi_variational_size(&shape);
    int64_t Z = fixture_begin(p, ctx, shape.capacity, shape.latents, shape.latents * M * FIXTURE_DIMS + q_size);
    int64_t q = p->numbers - q_size;
    own = (variational_own){.shape = shape};
    for (int g = 0; g < p->groups; g++) {
        own.Z[g] = p->x + Z + g * M * FIXTURE_DIMS;
        own.Z_bar[g] = p->bar + Z + g * M * FIXTURE_DIMS;
        own.theta_bar[g] = p->bar + fixture_theta(p, g);
        own.mean_bar[g] = p->bar + fixture_mean(p, g);
    }
    for (int64_t i = q; i < p->numbers; i++) {
        p->x[i] *= 0.2;
    }
    p->latents = shape.latents;
    p->components = shape.components;
    p->steps = shape.steps;
    own.bar = (thi_adjoints){q_size > 0 ? p->bar + q : NULL, own.theta_bar, own.mean_bar, own.Z_bar};
    own.at = (thi_variational_at){.Z = own.Z, .q = q_size > 0 ? p->x + q : NULL, .fresh = true};
    if (variant == BY_SITES) {
        assert_ok(ctx, thi_sites_alloc(&own.sites, ctx, M));
        own.at.sites = &own.sites;
    }
    p->own = &own;
    p->shape = &own.shape;
    p->q = &own.at;
    p->adjoints = &own.bar;
}

static void close_variational(engine_problem *p)
{
    variational_own *own = p->own;
    thi_sites_free(&own->sites);
}

const engine_fixture fixture_variational = {
    .variants = FAMILIES, .open = open_variational, .move = move_variational, .close = close_variational};

/*
 * --- decoupled: plain with length-scales of their own, orthogonal by sites with points and with such, and three
 * latents of which the last has a prior and bases of its own ---
 */

enum { PLAIN, ORTHOGONAL, ORTHOGONAL_SCALES, GROUPS, PLAIN_GROUPS, FORMS, MOST_LATENTS = 3 };
static const int one_group[MOST_LATENTS] = {0, 0, 0}, two_groups[MOST_LATENTS] = {0, 0, 1};

typedef struct decoupled_own {
    thi_decoupled_family family;
    thi_decoupled_q q[FIXTURE_GROUPS];
    thi_decoupled_bar bar[FIXTURE_GROUPS];
    thi_natural sites[MOST_LATENTS];
    thi_matrix L_bar[MOST_LATENTS];
    int64_t *columns;
    double *T;
} decoupled_own;

static void move_decoupled(engine_problem *p)
{
    decoupled_own *own = p->own;
    int64_t M = own->family.shape.orthogonal ? own->family.shape.beta : 0;
    for (int q = 0; q < own->family.shape.latents; q++) {
        for (int64_t j = 0; j < M; j++) {
            own->sites[q].t[j] = sin(1.0 + q + (double)j);
            for (int64_t i = j; i < M; i++) {
                own->sites[q].T.data[i + j * M] =
                    i == j ? 2.0 + 0.1 * (double)((i + q) % 5) : 0.2 / (double)(1 + i + j);
            }
        }
    }
}

/* Numbers of a group of so many latents beyond the prior: a, alpha, beta, and where they are there log_c of both and L.
 */
static int64_t group_numbers(const thi_decoupled_shape *shape, int64_t latents, int64_t alpha, bool scales)
{
    int64_t M = shape->beta, points = FIXTURE_DIMS * (alpha + M);
    return alpha * latents + points * (scales ? 2 : 1) + (shape->orthogonal ? 0 : M * M * latents);
}

static void place_group(engine_problem *p, decoupled_own *own, int g, int64_t alpha, int64_t first, bool scales)
{
    const thi_decoupled_shape *shape = &own->family.shape;
    int latent = 0, latents = 0;
    for (int q = 0; q < shape->latents; q++) {
        latent += own->family.group[q] < g;
        latents += own->family.group[q] == g;
    }
    int64_t M = shape->beta, points = first + alpha * latents, more = points + FIXTURE_DIMS * alpha;
    int64_t log_c = more + FIXTURE_DIMS * M, log_c_beta = log_c + FIXTURE_DIMS * alpha;
    int64_t L = scales ? log_c_beta + FIXTURE_DIMS * M : log_c, end = L + (shape->orthogonal ? 0 : M * M * latents);
    double *x = p->x, *bar = p->bar;
    for (int k = 0; k < latents && !shape->orthogonal; k++) {
        own->sites[latent + k].T = thi_matrix_view(x + L + k * M * M, M, M, M);
        own->L_bar[latent + k] = thi_matrix_view(bar + L + k * M * M, M, M, M);
    }
    own->q[g] = (thi_decoupled_q){.alpha = {alpha, x + points, scales ? x + log_c : NULL},
                                  .beta = {M, x + more, scales ? x + log_c_beta : NULL},
                                  .a = thi_matrix_view(x + first, alpha, latents, alpha),
                                  .sites = own->sites + latent,
                                  .columns = {alpha, own->columns}};
    own->bar[g] = (thi_decoupled_bar){.theta = bar + fixture_theta(p, g),
                                      .mean = bar + fixture_mean(p, g),
                                      .a = thi_matrix_view(bar + first, alpha, latents, alpha),
                                      .alpha = bar + points,
                                      .log_c_alpha = scales ? bar + log_c : NULL,
                                      .beta = bar + more,
                                      .log_c_beta = scales ? bar + log_c_beta : NULL,
                                      .L = shape->orthogonal ? NULL : own->L_bar + latent};
    for (int64_t i = log_c; i < end; i++) {
        x[i] *= i < L ? 0.2 : 1.0 / (double)M;
    }
}

static void open_decoupled(engine_problem *p, thiele_context *ctx, int variant, int size)
{
    static decoupled_own own;
    int64_t alpha = 7 * size, M = 4 * size, rows = 12 * size;
    bool many = variant >= GROUPS, plain = variant == PLAIN || variant == PLAIN_GROUPS;
    bool scales = !many && variant != ORTHOGONAL;
    own = (decoupled_own){.family = {{FIXTURE_DIMS, many ? MOST_LATENTS : 1, !plain, M, rows, alpha},
                                     many ? 2 : 1,
                                     many ? two_groups : one_group}};
    const thi_decoupled_shape *shape = &own.family.shape;
    int64_t each = group_numbers(shape, many ? 2 : 1, alpha, scales), last = group_numbers(shape, 1, alpha, scales);
    int64_t first = fixture_begin(p, ctx, rows, own.family.groups, each + (many ? last : 0));
    own.T = fixture_numbers((M + 1) * M * shape->latents);
    own.columns = calloc((size_t)alpha, sizeof *own.columns);
    assert_non_null(own.columns);
    for (int64_t i = 0; i < alpha; i++) {
        own.columns[i] = i;
    }
    for (int q = 0; q < shape->latents; q++) {
        double *T = own.T + (M + 1) * M * q;
        own.sites[q] = (thi_natural){.T = thi_matrix_view(T, M, M, M), .t = T + M * M};
    }
    for (int g = 0; g < own.family.groups; g++) {
        place_group(p, &own, g, alpha, first + g * each, scales);
    }
    p->latents = shape->latents;
    p->steps = !plain;
    p->own = &own;
    p->shape = &own.family;
    p->q = own.q;
    p->adjoints = own.bar;
}

static void close_decoupled(engine_problem *p)
{
    const decoupled_own *own = p->own;
    free(own->T);
    free(own->columns);
}

const engine_fixture fixture_decoupled = {
    .variants = FORMS, .open = open_decoupled, .move = move_decoupled, .close = close_decoupled};
