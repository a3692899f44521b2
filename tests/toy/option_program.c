/* A program compiled with a newer header than the library's: with an argument it sets the option that is new. */
#include <stdio.h>
#include <thiele/thiele.h>

int main(int argc, char **argv)
{
    thiele_fit_options fit = {
        .size = sizeof fit, .columns.target = "strength", .prior.kernel = "se", .stopping.iterations = 1};
    thiele_context *ctx = NULL;
    thiele_table *table = NULL;
    thiele_model *model = NULL;
    (void)argv;
    fit.result.toy_size = argc > 1 ? 4 : 0;
    thiele_status status = thiele_context_create(&ctx, NULL);
    if (status == THIELE_OK) {
        status = thiele_table_generate(&table, ctx, 30, 1);
    }
    if (status == THIELE_OK) {
        status = thiele_model_fit(&model, ctx, table, &fit);
    }
    if (status != THIELE_OK) {
        fprintf(stderr, "%s\n", thiele_context_message(ctx));
    }
    thiele_model_destroy(model);
    thiele_table_destroy(table);
    thiele_context_destroy(ctx);
    return status != THIELE_OK;
}
