/*
 * What the options of a fit mean for one of its targets: lists with ';' between their texts have one for each target,
 * and what is not for all goes to those that can use it.
 */
#include <ctype.h>
#include <string.h>

#include "model/parts.h"

/* --- lists with ';' --------------------------------------------------------------------------------------------------
 */

int thi_count_texts(const char *list)
{
    int count = 1;
    for (const char *at = strchr(list, ';'); at != NULL; at = strchr(at + 1, ';')) {
        count++;
    }
    return count;
}

thiele_status thi_take_text(thiele_context *ctx, const char *list, int index, char **out)
{
    const char *first = list;
    for (int i = 0; i < index; i++) {
        first = strchr(first, ';') + 1;
    }
    const char *end = strchr(first, ';');
    size_t length = end != NULL ? (size_t)(end - first) : strlen(first);
    while (length > 0 && isspace((unsigned char)*first)) {
        first++;
        length--;
    }
    while (length > 0 && isspace((unsigned char)first[length - 1])) {
        length--;
    }
    return thi_strndup(ctx, out, first, length);
}

/* The target's own text where there is one for each; else the one for all. NULL stays. */
static thiele_status take_own(const thi_choice *c, const char *list, int target, char **own, const char **text)
{
    *text = list;
    if (list == NULL || thi_count_texts(list) != c->targets) {
        return THIELE_OK;
    }
    thiele_status status = thi_take_text(c->ctx, list, target, own);
    *text = *own;
    return status;
}

/* --- settings --------------------------------------------------------------------------------------------------------
 */

/* "risk.noise=0.1" is for the target risk, "noise=0.1" for all of them. */
typedef struct settings {
    const thi_choice *choice;
    int target;
    thi_text text;
} settings;

static thiele_status take_setting(void *arg, const char *part, size_t length)
{
    settings *s = arg;
    for (int p = 0; p < s->choice->targets; p++) {
        const char *name = s->choice->table->name[s->choice->target[p]];
        size_t prefix = strlen(name) + 1;
        if (length > prefix && part[prefix - 1] == '.' && strncmp(part, name, prefix - 1) == 0) {
            if (p != s->target) {
                return THIELE_OK;
            }
            part += prefix;
            length -= prefix;
            break;
        }
    }
    thi_text_add(&s->text, "%s%.*s", s->text.length > 0 ? ", " : "", (int)length, part);
    return THIELE_OK;
}

static thiele_status take_settings(const thi_choice *c, const char *list, int target, char **out)
{
    settings s = {.choice = c, .target = target};
    thi_text_init(&s.text, c->ctx);
    thiele_status status = thi_split_list(list, take_setting, &s);
    if (status == THIELE_OK && s.text.length > 0) {
        return thi_text_take(&s.text, out);
    }
    thi_text_clear(&s.text);
    return status == THIELE_OK ? s.text.status : status;
}

/* --- columns ---------------------------------------------------------------------------------------------------------
 */

/* The other targets are no inputs, nor is the exposure of theirs. */
static thiele_status ignore_others(const thi_choice *c, const char *list, int target, bool exposed, char **out)
{
    thi_text text;
    thi_text_init(&text, c->ctx);
    for (int p = 0; p <= c->targets; p++) {
        int column = p < c->targets ? c->target[p] : c->exposure;
        if (column >= 0 && p != target && (p < c->targets || !exposed)) {
            thi_text_add(&text, "\"%s\",", c->table->name[column]);
        }
    }
    thi_text_add(&text, "%s", list != NULL ? list : "");
    return thi_text_take(&text, out);
}

/* What the target's likelihood has a use for. */
static thiele_status choose_uses(thi_part_options *part, const thi_choice *c, const thiele_fit_options *options,
                                 bool *exposed)
{
    const thi_likelihood_ops *ops = options->model.own != NULL ? options->model.own->ops : NULL;
    thiele_status status = THIELE_OK;
    if (ops == NULL) {
        THI_TRY(thi_likelihood_find(c->ctx, part->fit.model.likelihood, &ops));
    }
    bool known = ops != NULL && thi_count_texts(options->model.likelihood != NULL ? options->model.likelihood : "") > 1;
    bool labels = !known || ops->support == THI_SUPPORT_BINARY || ops->support == THI_SUPPORT_CLASS;
    *exposed = !known || ops->log_link;
    part->fit.columns.classes = labels ? part->fit.columns.classes : NULL;
    part->fit.columns.exposure = *exposed ? part->fit.columns.exposure : NULL;
out:
    return status;
}

thiele_status thi_part_options_make(thi_part_options *part, const thi_choice *c, const thiele_fit_options *options,
                                    int target)
{
    bool exposed;
    thiele_status status;
    *part = (thi_part_options){.fit = *options};
    part->fit.columns.target = c->table->name[c->target[target]];
    THI_TRY(take_own(c, options->model.likelihood, target, &part->likelihood, &part->fit.model.likelihood));
    THI_TRY(take_own(c, options->prior.kernel, target, &part->kernel, &part->fit.prior.kernel));
    THI_TRY(take_own(c, options->columns.classes, target, &part->classes, &part->fit.columns.classes));
    THI_TRY(choose_uses(part, c, options, &exposed));
    THI_TRY(ignore_others(c, options->columns.ignore, target, exposed, &part->ignore));
    THI_TRY(take_settings(c, options->prior.set, target, &part->set));
    THI_TRY(take_settings(c, options->prior.prior, target, &part->prior));
    part->fit.columns.ignore = part->ignore;
    part->fit.prior.set = part->set;
    part->fit.prior.prior = part->prior;
out:
    return status;
}

void thi_part_options_clear(thi_part_options *part)
{
    thi_free(part->likelihood);
    thi_free(part->kernel);
    thi_free(part->classes);
    thi_free(part->ignore);
    thi_free(part->set);
    thi_free(part->prior);
    *part = (thi_part_options){0};
}
