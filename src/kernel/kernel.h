/*
 * Kernels as trees. A leaf is a feature map u(x) followed by a profile of |u - u'|^2 or <u, u'>; sums and products join
 * them. Everything is evaluated in tiles, so that no intermediate matrix of a composite is ever stored whole.
 *
 *   kind        features u(x)                              profile of        file
 *   stationary  x_d / l_d                                  |u - u'|^2        kinds.def (the table), features.c (maps),
 *   periodic    (cos, sin)(2 pi x_d / period) / l_d        |u - u'|^2        leaf.c (one tile of one leaf),
 *   linear ..   x_d / l_d                                  <u, u'>           evaluate.c (tiles, threads, composites)
 *   cosine      (cos, sin)(2 pi sum_d x_d / l_d)           <u, u'>
 */
#ifndef THI_KERNEL_H
#define THI_KERNEL_H

#include "base/base.h"
#include "kernel/profiles.h"
#include "linalg/linalg.h"
#include "linalg/vector.h"
#include <thiele/kernel.h>

/* A tile has at most this many rows and columns: 256 x 64 doubles stay in a core's own cache. */
enum { THI_TILE_ROWS = 256, THI_TILE_COLS = 64 };
/* What a kernel text may hold, so that an untrusted one stays small. */
enum { THI_KERNEL_NODES_MAX = 64, THI_KERNEL_DEPTH_MAX = 16, THI_DEGREE_MAX = 16 };

typedef struct thi_leaf thi_leaf;

typedef struct thi_feature_map {
    /* How many features a leaf over `dims` columns has. */
    int (*count)(int dims);
    /* u (features x n) of x (D x n, all columns of the table) */
    void (*forward)(const thi_leaf *leaf, int64_t n, int D, const double *x, double *u);
    /*
     * Given ubar = dF/du: theta_bar (the leaf's own parameters) += dF/d log theta, and xbar (D x n) += dF/dx unless
     * NULL. u may have been shifted by a constant when the map is linear.
     */
    void (*adjoint)(const thi_leaf *leaf, int64_t n, int D, const double *x, const double *u, const double *ubar,
                    double *theta_bar, double *xbar);
    bool linear;
} thi_feature_map;

/* The list of all kernels; a program of tests has its own. */
#ifndef THI_KINDS
#define THI_KINDS "kernel/kinds.def"
#endif
#define THI_KIND(name, features, ...) extern const thi_feature_map thi_features_##features;
#include THI_KINDS
#undef THI_KIND

typedef struct thi_kind {
    const char *name;
    const thi_feature_map *map;
    thi_family family;
    thi_profile profile;
    bool lengthscale;  /* has one per column (ard) or one for all */
    const char *extra; /* name of the last parameter, NULL for none */
    bool degree;
} thi_kind;

extern const thi_kind thi_kinds[];
const thi_kind *thi_kind_find(const char *name, size_t length);
/* All names, for messages: "se, matern12, ...". */
const char *thi_kind_names(void);

/* Parameters of a leaf in order: length-scales, variance, extra. */
struct thi_leaf {
    const thi_kind *kind;
    bool ard;
    bool all_dims; /* no dims argument was given */
    int dims, features;
    int *dim;   /* columns of the table, ascending */
    int *scale; /* dims: which of its length-scales each has; 0 where there is one for all, or none */
    int degree;
    int lengthscales; /* 0, 1 or, with ard, at most dims: columns that share one have it once */
    int parameters;
    int first;           /* index of its first parameter in the kernel */
    const double *value; /* points into the kernel's values */
    int number;          /* 1 for the first leaf of its kind in the kernel, 2 for the second, ... */
};

static inline double thi_leaf_lengthscale(const thi_leaf *leaf, int dim)
{
    return leaf->value[leaf->scale[dim]];
}
static inline double thi_leaf_variance(const thi_leaf *leaf)
{
    return leaf->value[leaf->lengthscales];
}
static inline double thi_leaf_extra(const thi_leaf *leaf)
{
    return leaf->kind->extra != NULL ? leaf->value[leaf->lengthscales + 1] : 0.0;
}

typedef enum thi_node_type { THI_NODE_LEAF, THI_NODE_SUM, THI_NODE_PRODUCT } thi_node_type;

typedef struct thi_node {
    thi_node_type type;
    int leaf;     /* of a leaf: its index in the kernel */
    int children; /* of a sum or product: 2 or more */
    struct thi_node **child;
} thi_node;

typedef struct thi_parameter {
    char *name;
    bool fixed; /* not to be learned */
    bool given; /* the user said a value */
} thi_parameter;

struct thiele_kernel {
    int dims;       /* D */
    int columns;    /* of the user's; a dimension of that number is of none of them */
    int *column;    /* which of the user's columns each dimension belongs to, ascending; texts name columns */
    bool *joined;   /* of each dimension: it shares the length-scale of the one before it, with ard too */
    thi_node *root; /* nodes and leaves are owned */
    int leaves;
    thi_leaf leaf[THI_KERNEL_NODES_MAX];
    int nodes, depth;
    int parameters;
    thi_parameter *parameter;
    double *value, *log_value; /* one per parameter */
};

/* --- parse.c --- */
/*
 * The user's columns, where one of them may stand for several dimensions (a text column and its indicators). dims and
 * column_name are counted by columns, names of parameters made from dim_name. A dimension of column number `columns` is
 * of none of them: no kernel sees it. Dimensions of one column may share a length-scale, each joined to the one before.
 */
typedef struct thi_columns {
    int dims, columns;
    const int *column;              /* of each dimension, ascending from 0; NULL: each its own */
    const char *const *column_name; /* NULL: columns have numbers only */
    const char *const *dim_name;    /* NULL likewise */
    const bool *joined;             /* of each dimension; NULL: none is */
} thi_columns;
thiele_status thi_kernel_parse(thiele_kernel **out, thiele_context *ctx, const char *text, const thi_columns *columns);

/* --- kernel.c -------------------------------------------------------------------------------------------------------
 */
thiele_status thi_kernel_copy(thiele_kernel **out, thiele_context *ctx, const thiele_kernel *kernel);
/*
 * Between units: length-scales and periods are multiplied by the scale of their column, variances by `target`^2 (in a
 * product only that of the first part). A period or a shared length-scale over columns of different scales keeps the
 * model's units. direction +1: from standardised to data units; -1: back.
 */
void thi_kernel_rescale(thiele_kernel *kernel, const double *scale, double target, int direction);
/* False for a length-scale or period that columns of different scales share: it stays in standard deviations. */
bool thi_kernel_has_unit(const thiele_kernel *kernel, int parameter, const double *scale);
/* The factor by which one parameter is multiplied. */
double thi_kernel_unit(const thiele_kernel *kernel, int parameter, const double *scale, double target);
/*
 * Fixes what the data cannot tell apart and the user did not set: one variance of every part of a product but the
 * first; in a linear or polynomial kernel either the one length-scale or, with ard, the variance.
 */
void thi_kernel_fix_redundant(thiele_kernel *kernel);
/* Whether they are the same function, to the last bit of every value. */
bool thi_kernel_is_same(const thiele_kernel *a, const thiele_kernel *b);
void thi_kernel_set_one(thiele_kernel *kernel, int parameter, double log_theta);
/* The first column of the table that has this length-scale of a leaf. */
int thi_leaf_dim_of(const thi_leaf *leaf, int own);
/* Which leaf a parameter belongs to. */
const thi_leaf *thi_kernel_leaf_of(const thiele_kernel *kernel, int parameter);

/* --- evaluate.c -----------------------------------------------------------------------------------------------------
 */
/* Inputs with every leaf's features: made once, used for many matrices. X (D x n) is borrowed. */
typedef struct thi_inputs {
    int64_t n;
    const double *X;
    double *features; /* all leaves in turn, each features x n */
    const double *leaf[THI_KERNEL_NODES_MAX];
} thi_inputs;
thiele_status thi_inputs_make(thi_inputs *inputs, thiele_context *ctx, const thiele_kernel *kernel, int64_t n,
                              const double *X);
void thi_inputs_clear(thi_inputs *inputs);

/*
 * K (A.n x B.n) = k(A, B). symmetric: A and B are the same rows; the lower triangle is filled (the white kernel is on
 * its diagonal) and what stands above it is unspecified. K may be of any leading dimension. O(n n2 D) flops, one exp an
 * entry.
 */
thiele_status thi_kernel_fill(const thiele_kernel *kernel, thiele_context *ctx, const thi_inputs *A,
                              const thi_inputs *B, thi_matrix K, bool symmetric);
/* k(x_i, x_i) */
thiele_status thi_kernel_fill_diagonal(const thiele_kernel *kernel, thiele_context *ctx, const thi_inputs *A,
                                       double *diagonal);
/*
 * Adjoint: theta_bar += dF/d log theta and Bbar (D x B.n, or NULL) += dF/dB, F = sum_ij Kbar_ij K_ij. symmetric: Kbar
 * is symmetric and its lower triangle given; A and B are the same rows, and Bbar takes both arguments' share.
 */
thiele_status thi_kernel_pull(const thiele_kernel *kernel, thiele_context *ctx, const thi_inputs *A,
                              const thi_inputs *B, thi_matrix Kbar, bool symmetric, double *theta_bar, double *Bbar);
/*
 * The same with the values K = k(A, B) at hand, of symmetric ones those above the diagonal: a squared exponential then
 * needs neither distances nor exp. Others take no notice of them.
 */
thiele_status thi_kernel_pull_known(const thiele_kernel *kernel, thiele_context *ctx, const thi_inputs *A,
                                    const thi_inputs *B, thi_matrix Kbar, thi_matrix K, bool symmetric,
                                    double *theta_bar, double *Bbar);
/* The same for F = sum_i kbar_i k(x_i, x_i). */
thiele_status thi_kernel_pull_diagonal(const thiele_kernel *kernel, thiele_context *ctx, const thi_inputs *A,
                                       const double *kbar, double *theta_bar, double *Abar);

/* --- leaf.c: one tile of one leaf ------------------------------------------------------------------------------------
 */
typedef struct thi_tile {
    const thiele_kernel *kernel;
    const thi_inputs *A, *B;
    int64_t row, col; /* of the tile's first entry */
    int rows, cols;
    int max_rows, max_cols; /* of any tile of the same matrix */
    bool same;              /* A and B are the same rows */
    thi_matrix K;           /* the values of a squared exponential, where they are known; data NULL: not */
    double *scratch;
} thi_tile;
/* Doubles of scratch that a leaf needs for tiles of at most this size. */
size_t thi_leaf_scratch(const thi_leaf *leaf, int max_rows, int max_cols);
/* K (rows x cols) of the tile. */
void thi_leaf_fill(const thi_leaf *leaf, int index, const thi_tile *tile, thi_matrix K);
/* theta_bar (all of the kernel's) and Bbar (D x tile's cols, or NULL) += the tile's share. */
void thi_leaf_pull(const thi_leaf *leaf, int index, const thi_tile *tile, thi_matrix Kbar, double *theta_bar,
                   double *Bbar);
void thi_leaf_diagonal(const thi_leaf *leaf, int index, const thi_tile *tile, double *diagonal);
void thi_leaf_pull_diagonal(const thi_leaf *leaf, int index, const thi_tile *tile, const double *kbar,
                            double *theta_bar, double *Abar);

#endif
