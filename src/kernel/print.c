/* Kernels as text, in the form that parse.c reads. */
#include "kernel/kernel.h"

/* ", name~value" or ", name=[v1, v2]" for the parameters first .. first+count-1 of the kernel. */
static void print_values(thi_text *text, const char **comma, const thiele_kernel *kernel, const char *name, int first,
                         int count)
{
    thi_text_add(text, "%s%s%c%s", *comma, name, kernel->parameter[first].fixed ? '=' : '~', count > 1 ? "[" : "");
    for (int i = 0; i < count; i++) {
        thi_text_add(text, "%s", i > 0 ? "," : "");
        thi_text_add_number(text, kernel->value[first + i]);
    }
    thi_text_add(text, "%s", count > 1 ? "]" : "");
    *comma = ", ";
}

/* ", dims=[1,3]": the columns, each of them whole. */
static void print_dims(thi_text *text, const char **comma, const thiele_kernel *kernel, const thi_leaf *leaf)
{
    if (leaf->all_dims || leaf->dims == 0) {
        return;
    }
    const int *column = kernel->column;
    bool several = column[leaf->dim[leaf->dims - 1]] != column[leaf->dim[0]];
    thi_text_add(text, "%sdims=%s", *comma, several ? "[" : "");
    for (int d = 0; d < leaf->dims; d++) {
        if (d == 0 || column[leaf->dim[d]] != column[leaf->dim[d - 1]]) {
            thi_text_add(text, "%s%d", d > 0 ? "," : "", column[leaf->dim[d]] + 1);
        }
    }
    thi_text_add(text, "%s", several ? "]" : "");
    *comma = ", ";
}

static void print_leaf(thi_text *text, const thiele_kernel *kernel, const thi_leaf *leaf, bool all_values)
{
    const char *comma = "(";
    thi_text_add(text, "%s", leaf->kind->name);
    if (leaf->ard) {
        thi_text_add(text, "%sard", comma);
        comma = ", ";
    }
    print_dims(text, &comma, kernel, leaf);
    if (leaf->kind->degree) {
        thi_text_add(text, "%sdegree=%d", comma, leaf->degree);
        comma = ", ";
    }
    const struct {
        const char *name;
        int first, count;
    } part[] = {{"lengthscale", leaf->first, leaf->lengthscales},
                {"variance", leaf->first + leaf->lengthscales, 1},
                {leaf->kind->extra, leaf->first + leaf->lengthscales + 1, leaf->kind->extra != NULL}};
    for (int i = 0; i < 3; i++) {
        if (part[i].count > 0 && (all_values || kernel->parameter[part[i].first].given)) {
            print_values(text, &comma, kernel, part[i].name, part[i].first, part[i].count);
        }
    }
    thi_text_add(text, "%s", comma[0] == ',' ? ")" : "");
}

static void print_node(thi_text *text, const thiele_kernel *kernel, const thi_node *node, bool all_values)
{
    if (node->type == THI_NODE_LEAF) {
        print_leaf(text, kernel, &kernel->leaf[node->leaf], all_values);
        return;
    }
    for (int c = 0; c < node->children; c++) {
        const thi_node *child = node->child[c];
        bool enclose = child->type != THI_NODE_LEAF && !(node->type == THI_NODE_SUM && child->type == THI_NODE_PRODUCT);
        thi_text_add(text, "%s%s", c == 0 ? "" : (node->type == THI_NODE_SUM ? " + " : "*"), enclose ? "(" : "");
        print_node(text, kernel, child, all_values);
        thi_text_add(text, "%s", enclose ? ")" : "");
    }
}

thiele_status thiele_kernel_print(const thiele_kernel *kernel, thiele_context *ctx, int with_values, char **out)
{
    THI_NEED_OUT(out, ctx, kernel && ctx);
    thi_text text;
    thi_text_init(&text, ctx);
    print_node(&text, kernel, kernel->root, with_values != 0);
    return thi_text_take(&text, out);
}
