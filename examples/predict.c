#include <stdio.h>
#include <thiele/thiele.h>
int main(void)
{
    thiele_context *ctx;
    thiele_table *train;
    thiele_model *model;
    thiele_fit_options fit = {.size = sizeof fit, .columns = {.target = "strength", .inputs = "x1,x2"}};
    double x[] = {1.5, -0.5}, mean, variance;
    if (thiele_context_create(&ctx, NULL) || thiele_table_open(&train, ctx, "train.csv", NULL) ||
        thiele_model_fit(&model, ctx, train, &fit) || thiele_model_predict_rows(model, ctx, 1, x, 0, &mean, &variance))
        return fprintf(stderr, "%s\n", thiele_context_message(ctx)), 1;
    printf("strength at (1.5, -0.5): mean %.2f, variance %.2f\n", mean, variance);
    thiele_model_destroy(model), thiele_table_destroy(train), thiele_context_destroy(ctx);
}
