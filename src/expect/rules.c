/*
 * Gauss-Legendre nodes; Gauss-Hermite rules and their tensor products. The first rules of the ladder for one latent are
 * kept: a single row is then a matter of microseconds, where computing them would take 30 to 200.
 */
#include <string.h>

#include "expect/integrate.h"
#include "linalg/linalg.h"

const double thi_legendre[8][2] = {
    {0.989400934991649932596, 0.027152459411754094851}, {0.944575023073232576077, 0.062253523938647892862},
    {0.865631202387831743880, 0.095158511682492784809}, {0.755404408355003033895, 0.124628971255533872052},
    {0.617876244402643748446, 0.149595988816576732081}, {0.458016777657227386342, 0.169156519395002538189},
    {0.281603550779258913230, 0.182603415044923588866}, {0.095012509837637440185, 0.189450610455068496285},
};

/* The nodes from the middle up, and their weights, as thi_gauss_hermite gives them. */
static const double rule12[6][2] = {
    {0.4444030019441389, 0.32166436151283012},    {1.3403751971516167, 0.14696704804532995},
    {2.2594644510007988, 0.029116687912364186},   {3.2237098287700978, 0.0022033806875331979},
    {4.2718258479322815, 4.8371849225906341e-05}, {5.500901704467748, 1.499927167637165e-07},
};
static const double rule21[11][2] = {
    {0, 0.27026018357287701},
    {0.67804569244064394, 0.21533371569505966},
    {1.3597658232112302, 0.10839228562641939},
    {2.0491024682571628, 0.033952729786542839},
    {2.7505929810523733, 0.0064396970514087725},
    {3.4698466904753764, 0.00070804779548153639},
    {4.2143439816884216, 4.2192347425516699e-05},
    {4.9949639447820253, 1.2253548361482524e-06},
    {5.8293820073044715, 1.450661284493086e-08},
    {6.7514447187174609, 4.9753686041217225e-11},
    {7.8493828951138225, 2.0989912195656681e-14},
};
static const double rule32[16][2] = {
    {0.27554641923027579, 0.21170556988047931},   {0.82728490377976516, 0.15653899375759844},
    {1.3809801992721442, 0.085344808272080755},   {1.9380049059257174, 0.034109847726092081},
    {2.4998404151873954, 0.0099034617023205929},  {3.0681351690131211, 0.0020620510513078873},
    {3.644781249880833, 0.00030255702581706258},  {4.2320211099954097, 3.0559803060896288e-05},
    {4.8326046132444889, 2.0596221039534249e-06}, {5.4500332736234283, 8.8812907131058836e-08},
    {6.0889643090769869, 2.3125184120742426e-09}, {6.7559308305407049, 3.3475012398012001e-11},
    {7.4607557541215188, 2.378064855777807e-13},  {8.2197287653822446, 6.7552902236701593e-16},
    {9.0643992107024065, 5.2084495919608488e-19}, {10.077422674229465, 4.1246074890182776e-23},
};

static bool recall(int nodes, double *node, double *weight)
{
    static const struct {
        int nodes;
        const double (*half)[2];
    } kept[] = {{12, rule12}, {21, rule21}, {32, rule32}};
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++) {
        for (int k = nodes / 2; kept[i].nodes == nodes && k < nodes; k++) {
            const double *one = kept[i].half[k - nodes / 2];
            node[k] = one[0];
            node[nodes - 1 - k] = one[0] == 0 ? 0 : -one[0];
            weight[k] = weight[nodes - 1 - k] = one[1];
        }
        if (kept[i].nodes == nodes) {
            return true;
        }
    }
    return false;
}

void thi_rule_clear(thi_rule *rule)
{
    thi_free(rule->z);
    thi_free(rule->weight);
    *rule = (thi_rule){0, 1, NULL, NULL};
}

/* Points of a tensor product below this weight can't be seen in a sum of doubles, unless log p grows as exp(10 z). */
static const double LEAST_WEIGHT = 1e-30;

/* Point k of the tensor product, its digits to base n being the nodes; returns its weight. */
static double tensor_point(int n, int Q, const double *node, const double *weight, int64_t k, double *z)
{
    double w = 1;
    for (int q = 0; q < Q; q++, k /= n) {
        z[q] = node[k % n];
        w *= weight[k % n];
    }
    return w;
}

static int64_t tensor_fill(thi_rule *rule, int n, int Q, const double *node, const double *weight)
{
    double z[3];
    int64_t total = 1, kept = 0;
    for (int q = 0; q < Q; q++) {
        total *= n;
    }
    for (int64_t k = 0; k < total; k++) {
        double w = tensor_point(n, Q, node, weight, k, z);
        if (Q > 1 && w < LEAST_WEIGHT) {
            continue;
        }
        if (rule->z != NULL) {
            memcpy(rule->z + kept * Q, z, (size_t)Q * sizeof *z);
            rule->weight[kept] = w;
        }
        kept++;
    }
    return kept;
}

thiele_status thi_rule_hermite(thi_rule *rule, thiele_context *ctx, int nodes, int Q)
{
    double *node = NULL, *weight = NULL;
    thiele_status status = THIELE_OK;
    thi_rule_clear(rule);
    THI_TRY(thi_alloc(ctx, &node, (size_t)nodes, sizeof *node));
    THI_TRY(thi_alloc(ctx, &weight, (size_t)nodes, sizeof *weight));
    if (!recall(nodes, node, weight)) {
        THI_TRY(thi_gauss_hermite(ctx, nodes, node, weight));
    }
    int64_t count = tensor_fill(rule, nodes, Q, node, weight);
    THI_TRY(thi_alloc(ctx, &rule->z, (size_t)(count * Q), sizeof *rule->z));
    THI_TRY(thi_alloc(ctx, &rule->weight, (size_t)count, sizeof *rule->weight));
    rule->count = tensor_fill(rule, nodes, Q, node, weight);
out:
    thi_free(node);
    thi_free(weight);
    if (status != THIELE_OK) {
        thi_rule_clear(rule);
    }
    return status;
}
