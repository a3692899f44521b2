/*
 * Kernels from text:
 *   sum     = product { '+' product }            factor   = '(' sum ')' | name [ '(' [argument {',' argument}] ')' ]
 *   product = factor { '*' factor }              argument = 'ard' | 'dims' '=' columns | name ('='|'~') values
 *   values  = number | '[' number {',' number} ']'
 *   columns = column | '[' column {',' column} ']',   column = number | number ':' number | name | '"' name '"'
 * The text may come from a file nobody vouches for: nodes, depth and numbers are bounded.
 */
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/cursor.h"
#include "kernel/kernel.h"

typedef struct parser {
    thi_cursor cursor;
    const thi_columns *columns;
    thiele_kernel *kernel;
    int depth;
    /* Values as they were given, per leaf and parameter slot, before the kernel's arrays exist. */
    struct given {
        double *value; /* slots values, NaN where none was given */
        bool *fixed;
    } given[THI_KERNEL_NODES_MAX];
} parser;

/* --- dims ------------------------------------------------------------------------------------------------------------
 */

static thiele_status mark_range(parser *p, bool *wanted)
{
    double first;
    double last;
    thiele_status status = thi_cursor_number(&p->cursor, &first);
    if (status != THIELE_OK) {
        return status;
    }
    last = first;
    if (thi_cursor_accept(&p->cursor, ':')) {
        status = thi_cursor_number(&p->cursor, &last);
    }
    if (status != THIELE_OK) {
        return status;
    }
    if (!(first >= 1 && first <= last && last <= p->columns->columns) || first != floor(first) || last != floor(last)) {
        return thi_fail(p->cursor.ctx, THIELE_ERROR_ARGUMENT,
                        "kernel '%.200s', position %d: columns are counted from 1 to %d, the number of inputs",
                        p->cursor.text, (int)(p->cursor.at - p->cursor.text) + 1, p->columns->columns);
    }
    for (int d = 0; d < p->kernel->dims; d++) {
        int column = p->kernel->column[d] + 1;
        wanted[d] = wanted[d] || (column >= first && column <= last);
    }
    return THIELE_OK;
}

/* A column by name. */
static thiele_status mark_name(parser *p, bool *wanted)
{
    size_t length;
    const char *name;
    if (thi_cursor_accept(&p->cursor, '"')) {
        name = p->cursor.at;
        length = strcspn(name, "\"");
        p->cursor.at += length;
        if (!thi_cursor_accept(&p->cursor, '"')) {
            return thi_cursor_fail(&p->cursor, "a closing quote was expected");
        }
    } else {
        name = thi_cursor_word(&p->cursor, &length);
    }
    bool found = false;
    for (int d = 0; p->columns->column_name != NULL && length > 0 && d < p->kernel->dims; d++) {
        if (thi_word_is(name, length, p->columns->column_name[p->kernel->column[d]])) {
            wanted[d] = found = true;
        }
    }
    return found ? THIELE_OK
                 : thi_cursor_fail(&p->cursor,
                                   "no input column has that name (use its name, quoted, or its number from 1)");
}

static thiele_status dims(parser *p, bool *wanted)
{
    bool list = thi_cursor_accept(&p->cursor, '[');
    do {
        char next = thi_cursor_peek(&p->cursor);
        bool digits = isdigit((unsigned char)next) || next == '-';
        thiele_status status = digits ? mark_range(p, wanted) : mark_name(p, wanted);
        if (status != THIELE_OK) {
            return status;
        }
    } while (list && thi_cursor_accept(&p->cursor, ','));
    return !list || thi_cursor_accept(&p->cursor, ']') ? THIELE_OK
                                                       : thi_cursor_fail(&p->cursor, "',' or ']' was expected");
}

/* --- leaves ----------------------------------------------------------------------------------------------------------
 */

/* What the arguments of a leaf said, before its columns are known. */
typedef struct leaf_arguments {
    bool *wanted;
    bool dims_given, degree_given;
    struct {
        double *value;
        int count;
        bool fixed;
    } list[3]; /* length-scale, variance, extra */
    double degree;
} leaf_arguments;

static thiele_status values(parser *p, double **out, int *count)
{
    bool list = thi_cursor_accept(&p->cursor, '[');
    *count = 0;
    thi_free(*out);
    *out = NULL;
    do {
        thiele_status status = thi_grow(p->cursor.ctx, out, (size_t)*count + 1, sizeof **out);
        if (status == THIELE_OK) {
            status = thi_cursor_number(&p->cursor, *out + *count);
        }
        if (status != THIELE_OK) {
            return status;
        }
        double value = (*out)[(*count)++];
        if (!(value >= 1e-100 && value <= 1e100)) {
            return thi_cursor_fail(&p->cursor, "kernel parameters are positive numbers between 1e-100 and 1e100");
        }
        if (*count > p->kernel->dims) {
            return thi_cursor_fail(&p->cursor, "there are more values than input columns");
        }
    } while (list && thi_cursor_accept(&p->cursor, ','));
    return !list || thi_cursor_accept(&p->cursor, ']') ? THIELE_OK
                                                       : thi_cursor_fail(&p->cursor, "',' or ']' was expected");
}

/* Which of the three kinds of parameter a name means, -1 for none. */
static int parameter_slot(const thi_kind *kind, const char *name, size_t length)
{
    if (kind->lengthscale && (thi_word_is(name, length, "lengthscale") || thi_word_is(name, length, "l"))) {
        return 0;
    }
    if (thi_word_is(name, length, "variance")) {
        return 1;
    }
    bool short_period = kind->extra != NULL && kind->extra[0] == 'p' && thi_word_is(name, length, "p");
    return kind->extra != NULL && (thi_word_is(name, length, kind->extra) || short_period) ? 2 : -1;
}

static thiele_status fail_at(parser *p, const char *name, const char *why)
{
    p->cursor.at = name;
    return thi_cursor_fail(&p->cursor, why);
}

/* "kernel se has no such parameter: it takes ard, dims= and, with ..., lengthscale, variance" */
static thiele_status not_taken(parser *p, const thi_kind *kind, const char *name)
{
    char why[224];
    snprintf(why, sizeof why,
             "kernel %s has no such parameter: it takes %s%sdims= and, with '=value' (fixed) or '~value' (first "
             "guess), %s%s%s",
             kind->name, kind->lengthscale ? "ard, " : "", kind->degree ? "degree=, " : "",
             kind->lengthscale ? "lengthscale, variance" : "variance", kind->extra != NULL ? ", " : "",
             kind->extra != NULL ? kind->extra : "");
    return fail_at(p, name, why);
}

static const char twice[] = "this is given twice: give it once";

static thiele_status argument(parser *p, thi_leaf *leaf, leaf_arguments *arguments)
{
    size_t length;
    const char *name = thi_cursor_word(&p->cursor, &length);
    int slot = parameter_slot(leaf->kind, name, length);
    bool columns = thi_word_is(name, length, "dims");
    bool degree = leaf->kind->degree && thi_word_is(name, length, "degree");
    if (thi_word_is(name, length, "ard") && leaf->kind->lengthscale) {
        bool said = leaf->ard;
        leaf->ard = true;
        return said ? fail_at(p, name, twice) : THIELE_OK;
    }
    if (length == 0) {
        return thi_cursor_fail(
            &p->cursor, "'ard', 'dims=', or a parameter with '=value' (fixed) or '~value' (first guess) was expected");
    }
    if (slot < 0 && !columns && !degree) {
        return not_taken(p, leaf->kind, name);
    }
    if ((columns && arguments->dims_given) || (degree && arguments->degree_given) ||
        (slot >= 0 && arguments->list[slot].count > 0)) {
        return fail_at(p, name, twice);
    }
    bool fixed = thi_cursor_peek(&p->cursor) == '=';
    if (!thi_cursor_accept(&p->cursor, '=') && !thi_cursor_accept(&p->cursor, '~')) {
        return thi_cursor_fail(&p->cursor, "'=value' (fixed) or '~value' (first guess) was expected");
    }
    if (columns) {
        arguments->dims_given = true;
        return dims(p, arguments->wanted);
    }
    if (degree) {
        arguments->degree_given = true;
        return thi_cursor_number(&p->cursor, &arguments->degree);
    }
    arguments->list[slot].fixed = fixed;
    return values(p, &arguments->list[slot].value, &arguments->list[slot].count);
}

static thiele_status choose_columns(parser *p, thi_leaf *leaf, const leaf_arguments *arguments)
{
    int D = p->kernel->dims;
    leaf->all_dims = !arguments->dims_given;
    thiele_status status = thi_alloc(p->cursor.ctx, &leaf->dim, (size_t)D, sizeof *leaf->dim);
    for (int d = 0; status == THIELE_OK && d < D; d++) {
        if (leaf->all_dims ? p->kernel->column[d] < p->columns->columns : arguments->wanted[d]) {
            leaf->dim[leaf->dims++] = d;
        }
    }
    return status;
}

/* Which length-scale each column has. */
static thiele_status share_scales(parser *p, thi_leaf *leaf)
{
    thiele_status status = thi_alloc(p->cursor.ctx, &leaf->scale, (size_t)leaf->dims, sizeof *leaf->scale);
    leaf->lengthscales = leaf->kind->lengthscale;
    for (int d = 1; status == THIELE_OK && leaf->ard && d < leaf->dims; d++) {
        leaf->lengthscales += !p->kernel->joined[leaf->dim[d]];
        leaf->scale[d] = leaf->lengthscales - 1;
    }
    return status;
}

/* Lays out the leaf's parameters and keeps the values given for them. */
static thiele_status settle(parser *p, thi_leaf *leaf, leaf_arguments *arguments)
{
    if (!(arguments->degree >= 1 && arguments->degree <= THI_DEGREE_MAX) ||
        arguments->degree != floor(arguments->degree)) {
        return thi_cursor_fail(&p->cursor, "the degree is a whole number from 1 to 16");
    }
    leaf->degree = (int)arguments->degree;
    leaf->features = leaf->kind->map->count(leaf->dims);
    if (arguments->list[0].count > 1) {
        leaf->ard = true;
    }
    thiele_status status = share_scales(p, leaf);
    if (status != THIELE_OK) {
        return status;
    }
    leaf->parameters = leaf->lengthscales + 1 + (leaf->kind->extra != NULL);
    leaf->first = p->kernel->parameters;
    struct given *given = &p->given[p->kernel->leaves - 1];
    status = thi_alloc(p->cursor.ctx, &given->value, (size_t)leaf->parameters, sizeof *given->value);
    if (status == THIELE_OK) {
        status = thi_alloc(p->cursor.ctx, &given->fixed, (size_t)leaf->parameters, sizeof *given->fixed);
    }
    if (status != THIELE_OK) {
        return status;
    }
    int slot_first[4] = {0, leaf->lengthscales, leaf->lengthscales + 1, leaf->parameters};
    for (int slot = 0; slot < 3; slot++) {
        int slots = slot_first[slot + 1] - slot_first[slot];
        int count = arguments->list[slot].count;
        if (count > 1 && count != slots) {
            return thi_cursor_fail(&p->cursor, "the number of values does not match the number of columns");
        }
        for (int s = 0; s < slots; s++) {
            given->value[slot_first[slot] + s] = count == 0 ? NAN : arguments->list[slot].value[count > 1 ? s : 0];
            given->fixed[slot_first[slot] + s] = arguments->list[slot].fixed;
        }
    }
    p->kernel->parameters += leaf->parameters;
    return THIELE_OK;
}

static thiele_status arguments_of(parser *p, thi_leaf *leaf, leaf_arguments *arguments)
{
    if (!thi_cursor_accept(&p->cursor, '(') || thi_cursor_accept(&p->cursor, ')')) {
        return THIELE_OK;
    }
    do {
        thiele_status status = argument(p, leaf, arguments);
        if (status != THIELE_OK) {
            return status;
        }
    } while (thi_cursor_accept(&p->cursor, ','));
    return thi_cursor_accept(&p->cursor, ')') ? THIELE_OK : thi_cursor_fail(&p->cursor, "',' or ')' was expected");
}

static thiele_status new_node(parser *p, thi_node **out, thi_node_type type)
{
    if (p->kernel->nodes >= THI_KERNEL_NODES_MAX) {
        return thi_cursor_fail(&p->cursor, "the kernel has too many parts (at most 64)");
    }
    thiele_status status = thi_alloc(p->cursor.ctx, out, 1, sizeof **out);
    if (status == THIELE_OK) {
        (*out)->type = type;
        p->kernel->nodes++;
    }
    return status;
}

/* What the kernels are called elsewhere. */
static const thi_synonym synonyms[] = {
    {"rbf", "se"},
    {"gaussian", "se"},
    {"eq", "se"},
    {"sqexp", "se"},
    {"squared", "se"},
    {"squaredexponential", "se"},
    {"expquad", "se"},
    {"exponentiatedquadratic", "se"},
    {"matern", "matern52"},
    {"exponential", "matern12"},
    {"exp", "matern12"},
    {"laplacian", "matern12"},
    {"ou", "matern12"},
    {"rational", "rq"},
    {"ratquad", "rq"},
    {"rationalquadratic", "rq"},
    {"per", "periodic"},
    {"expsinesquared", "periodic"},
    {"dotproduct", "linear"},
    {"poly", "polynomial"},
    {"bias", "constant"},
    {"noise", "white"},
    {"whitenoise", "white"},
    {NULL, NULL},
};

static thiele_status unknown_kernel(const parser *p, const char *name, size_t length)
{
    thi_near near;
    thi_near_begin(&near, name, length, synonyms);
    for (const thi_kind *kind = thi_kinds; kind->name != NULL && length > 0; kind++) {
        thi_near_try(&near, kind->name);
    }
    bool found = near.name != NULL;
    return thi_fail(p->cursor.ctx, THIELE_ERROR_ARGUMENT, "kernel '%.200s', position %d: a kernel was expected%s%s%s%s",
                    p->cursor.text, (int)(name - p->cursor.text) + 1, found ? "; did you mean '" : ": ",
                    found ? near.name : thi_kind_names(), found ? "'? There are " : "", found ? thi_kind_names() : "");
}

static thiele_status parse_leaf(parser *p, thi_node **out)
{
    size_t length;
    const char *name = thi_cursor_word(&p->cursor, &length);
    const thi_kind *kind = thi_kind_find(name, length);
    if (kind == NULL) {
        p->cursor.at = name;
        return unknown_kernel(p, name, length);
    }
    thiele_status status = new_node(p, out, THI_NODE_LEAF);
    if (status != THIELE_OK) {
        return status;
    }
    thiele_kernel *kernel = p->kernel;
    (*out)->leaf = kernel->leaves;
    thi_leaf *leaf = &kernel->leaf[kernel->leaves++];
    *leaf = (thi_leaf){.kind = kind};
    leaf_arguments arguments = {.degree = 2};
    THI_TRY(thi_alloc(p->cursor.ctx, &arguments.wanted, (size_t)kernel->dims, sizeof(bool)));
    THI_TRY(arguments_of(p, leaf, &arguments));
    THI_TRY(choose_columns(p, leaf, &arguments));
    THI_TRY(settle(p, leaf, &arguments));
out:
    for (int slot = 0; slot < 3; slot++) {
        thi_free(arguments.list[slot].value);
    }
    thi_free(arguments.wanted);
    return status;
}

/* --- composites ------------------------------------------------------------------------------------------------------
 */

static thiele_status parse_joined(parser *p, thi_node **out, thi_node_type type);

static thiele_status parse_factor(parser *p, thi_node **out)
{
    if (!thi_cursor_accept(&p->cursor, '(')) {
        return parse_leaf(p, out);
    }
    if (++p->depth > THI_KERNEL_DEPTH_MAX) {
        return thi_cursor_fail(&p->cursor, "the kernel is nested too deeply (at most 16 levels)");
    }
    thiele_status status = parse_joined(p, out, THI_NODE_SUM);
    if (status == THIELE_OK && !thi_cursor_accept(&p->cursor, ')')) {
        status = thi_cursor_fail(&p->cursor, "'+', '*' or ')' was expected");
    }
    p->depth--;
    return status;
}

static thiele_status adopt(parser *p, thi_node *node, thi_node *child)
{
    thiele_status status = thi_grow(p->cursor.ctx, &node->child, (size_t)node->children + 1, sizeof *node->child);
    if (status == THIELE_OK) {
        node->child[node->children++] = child;
    }
    return status;
}

/* One part, or several joined by '+' (sum of products) or '*' (product of factors). *out is owned even on failure. */
static thiele_status parse_joined(parser *p, thi_node **out, thi_node_type type)
{
    bool sum = type == THI_NODE_SUM;
    thiele_status status = sum ? parse_joined(p, out, THI_NODE_PRODUCT) : parse_factor(p, out);
    while (status == THIELE_OK && thi_cursor_accept(&p->cursor, sum ? '+' : '*')) {
        if ((*out)->type != type) {
            thi_node *joined = NULL;
            status = new_node(p, &joined, type);
            if (status == THIELE_OK) {
                status = adopt(p, joined, *out);
                if (status != THIELE_OK) {
                    thi_free(joined);
                } else {
                    *out = joined;
                }
            }
        }
        thi_node *next = NULL;
        if (status == THIELE_OK) {
            /* Room first, so that a parsed part is never without an owner. */
            status = adopt(p, *out, NULL);
        }
        if (status == THIELE_OK) {
            status = sum ? parse_joined(p, &next, THI_NODE_PRODUCT) : parse_factor(p, &next);
            (*out)->child[(*out)->children - 1] = next;
        }
    }
    return status;
}

/* --- the kernel ------------------------------------------------------------------------------------------------------
 */

static int depth_of(const thi_node *node)
{
    int depth = 0;
    for (int c = 0; c < node->children; c++) {
        int below = depth_of(node->child[c]) + 1;
        depth = below > depth ? below : depth;
    }
    return depth;
}

/* "matern52#2.lengthscale[age]" */
static thiele_status name_parameter(const parser *p, const thi_leaf *leaf, int own, char **name)
{
    thi_text text;
    thi_text_init(&text, p->cursor.ctx);
    thi_text_add(&text, "%s", leaf->kind->name);
    if (leaf->number > 1) {
        thi_text_add(&text, "#%d", leaf->number);
    }
    if (own < leaf->lengthscales) {
        thi_text_add(&text, ".lengthscale");
        if (leaf->ard && p->columns->dim_name != NULL) {
            thi_text_add(&text, "[%s]", p->columns->dim_name[thi_leaf_dim_of(leaf, own)]);
        } else if (leaf->ard) {
            thi_text_add(&text, "[%d]", thi_leaf_dim_of(leaf, own) + 1);
        }
    } else {
        thi_text_add(&text, ".%s", own == leaf->lengthscales ? "variance" : leaf->kind->extra);
    }
    return thi_text_take(&text, name);
}

static thiele_status finish(parser *p)
{
    thiele_kernel *kernel = p->kernel;
    size_t n = (size_t)kernel->parameters;
    thiele_status status;
    THI_TRY(thi_alloc(p->cursor.ctx, &kernel->parameter, n, sizeof *kernel->parameter));
    THI_TRY(thi_alloc(p->cursor.ctx, &kernel->value, n, sizeof *kernel->value));
    THI_TRY(thi_alloc(p->cursor.ctx, &kernel->log_value, n, sizeof *kernel->log_value));
    for (int l = 0; l < kernel->leaves; l++) {
        thi_leaf *leaf = &kernel->leaf[l];
        leaf->value = kernel->value + leaf->first;
        leaf->number = 1;
        for (int before = 0; before < l; before++) {
            leaf->number += kernel->leaf[before].kind == leaf->kind;
        }
        for (int own = 0; own < leaf->parameters; own++) {
            int index = leaf->first + own;
            double value = p->given[l].value[own];
            thi_parameter *parameter = &kernel->parameter[index];
            parameter->given = !isnan(value);
            parameter->fixed = parameter->given && p->given[l].fixed[own];
            kernel->value[index] = parameter->given ? value : 1.0;
            kernel->log_value[index] = log(kernel->value[index]);
            THI_TRY(name_parameter(p, leaf, own, &parameter->name));
        }
    }
    kernel->depth = depth_of(kernel->root);
out:
    return status;
}

thiele_status thi_kernel_parse(thiele_kernel **out, thiele_context *ctx, const char *text, const thi_columns *columns)
{
    *out = NULL;
    if (columns->dims < 1) {
        return thi_fail(ctx, THIELE_ERROR_ARGUMENT, "a kernel needs at least one input column");
    }
    parser p = {.cursor = {ctx, "kernel", text, text}, .columns = columns};
    thiele_status status;
    THI_TRY(thi_alloc(ctx, &p.kernel, 1, sizeof *p.kernel));
    THI_TRY(thi_alloc(ctx, &p.kernel->column, (size_t)columns->dims, sizeof *p.kernel->column));
    THI_TRY(thi_alloc(ctx, &p.kernel->joined, (size_t)columns->dims, sizeof *p.kernel->joined));
    p.kernel->dims = columns->dims;
    p.kernel->columns = columns->columns;
    for (int d = 0; d < columns->dims; d++) {
        p.kernel->column[d] = columns->column != NULL ? columns->column[d] : d;
        p.kernel->joined[d] = columns->joined != NULL && columns->joined[d];
    }
    THI_TRY(parse_joined(&p, &p.kernel->root, THI_NODE_SUM));
    if (thi_cursor_peek(&p.cursor) != '\0') {
        THI_TRY(thi_cursor_fail(&p.cursor, "'+' or '*' was expected"));
    }
    THI_TRY(finish(&p));
    *out = p.kernel;
    p.kernel = NULL;
out:
    for (int leaf = 0; leaf < THI_KERNEL_NODES_MAX; leaf++) {
        thi_free(p.given[leaf].value);
        thi_free(p.given[leaf].fixed);
    }
    thiele_kernel_destroy(p.kernel);
    return status;
}

thiele_status thiele_kernel_parse(thiele_kernel **out, thiele_context *ctx, const char *text, int dims,
                                  const char *const *names)
{
    THI_NEED_OUT(out, ctx, ctx && text);
    thi_columns columns = {.dims = dims, .columns = dims, .column_name = names, .dim_name = names};
    return thi_kernel_parse(out, ctx, text, &columns);
}
