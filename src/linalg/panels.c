/* Matrices in panels of a few rows, for products with one vector. 2 flops and 8 bytes an entry. */
#include "linalg/panels.h"

/* The columns of panel p, from *first on: multiples of THI_PANEL. */
static int64_t panel_columns(const thi_panels *panels, int64_t p, int64_t *first)
{
    int64_t all = thi_panel_length(panels->cols);
    *first = panels->shape == THI_PANELS_UPPER ? p * THI_PANEL : 0;
    return (panels->shape == THI_PANELS_LOWER ? (p + 1) * THI_PANEL : all) - *first;
}

static int64_t panel_count(const thi_panels *panels)
{
    return thi_panel_length(panels->rows) / THI_PANEL;
}

/* Entry (i, j) of op(A), zero on the other side of a triangle. */
static double entry(thi_panel_shape shape, thi_trans ta, thi_matrix A, int64_t i, int64_t j)
{
    bool outside = (shape == THI_PANELS_LOWER && j > i) || (shape == THI_PANELS_UPPER && j < i);
    return outside ? 0.0 : A.data[ta == THI_N ? i + j * A.ld : j + i * A.ld];
}

static void fill_panel(const thi_panels *panels, thi_trans ta, thi_matrix A, int64_t p, double *to)
{
    int64_t first, row = p * THI_PANEL, columns = panel_columns(panels, p, &first);
    int64_t rows = panels->rows - row < THI_PANEL ? panels->rows - row : THI_PANEL;
    int64_t last = first + columns < panels->cols ? first + columns : panels->cols;
    for (int64_t j = first; j < last; j++) {
        for (int64_t i = 0; i < rows; i++) {
            to[(j - first) * THI_PANEL + i] = entry(panels->shape, ta, A, row + i, j);
        }
    }
}

thiele_status thi_panels_make(thi_panels *panels, thiele_context *ctx, thi_panel_shape shape, thi_trans ta,
                              thi_matrix A)
{
    *panels =
        (thi_panels){.shape = shape, .rows = ta == THI_N ? A.rows : A.cols, .cols = ta == THI_N ? A.cols : A.rows};
    int64_t size = 0, first;
    for (int64_t p = 0; p < panel_count(panels); p++) {
        size += THI_PANEL * panel_columns(panels, p, &first);
    }
    thiele_status status = thi_alloc(ctx, &panels->data, (size_t)size, sizeof *panels->data);
    double *to = panels->data;
    for (int64_t p = 0; status == THIELE_OK && p < panel_count(panels); p++) {
        fill_panel(panels, ta, A, p, to);
        to += THI_PANEL * panel_columns(panels, p, &first);
    }
    return status;
}

void thi_panels_clear(thi_panels *panels)
{
    thi_free(panels->data);
    *panels = (thi_panels){0};
}

void thi_panels_multiply(const thi_panels *panels, const double *x, double *y)
{
    const thi_vector_ops *vector = thi_vector();
    const double *A = panels->data;
    int64_t count = panel_count(panels), first;
    for (int64_t p = 0; p < count; p++) {
        int64_t columns = panel_columns(panels, p, &first);
        vector->panel(columns, A, x + first, y + p * THI_PANEL);
        A += THI_PANEL * columns;
    }
}
