/*
 * thiele-oracle FILE.json...|DIR: runs the library on the inputs of stored cases and compares the results with values
 * from an independent implementation (vectors/README.md has the schema and the conventions). One line a case, then the
 * counts. Kinds are told by the beginning of the case's name; a case of no known kind is skipped.
 */
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "oracle.h"

static const char usage[] =
    "usage: thiele-oracle FILE.json...|DIR...\n"
    "\n"
    "Runs the library on the inputs of stored cases and compares what comes out with the expected values in them.\n"
    "A directory stands for all *.json files in it, in the order of their names. Prints one line a case and, last,\n"
    "  N passed, N failed, N skipped\n"
    "A file that can't be read or is not a case counts as failed; a case of a kind not known yet is skipped.\n"
    "Exit status: 0 when none failed, 1 when one did, 2 when there was nothing to do.\n"
    "\n"
    "  --help    this text\n";

/* The first prefix that fits decides: a longer one stands before its own beginning. */
static const struct kind {
    const char *prefix;
    thiele_status (*run)(oracle_case *c);
} kinds[] = {
    {"kernels_", oracle_kernels},
    {"exact_gpr_", oracle_exact_gpr},
    {"metrics", oracle_metrics},
    {"likelihood_", oracle_likelihood},
    {"svgp_elbo_", oracle_svgp},
    {"vfe_", oracle_vfe},
    {"sites_", oracle_sites},
    {"mog_", oracle_mog},
    {"entropy_pairwise_", oracle_entropy},
    {"diagnostics", oracle_diagnostics},
    {"aaci_omega_", oracle_omega},
    {"aaci_cdf_", oracle_omega_cdf},
    {"aaci_cavi_", oracle_cavi},
    {"aaci_svi_", oracle_svi},
    {"aaci_posterior_", oracle_posterior},
    {"sparse_snga_", oracle_sparse_steps},
    {"sparse_", oracle_sparse},
    {"decoupled_", oracle_decoupled},
    {"blocksites_", oracle_blocksites},
    {"tightbound_", oracle_tightbound},
};

typedef struct tally {
    long passed, failed, skipped;
} tally;

static const struct kind *find_kind(const char *name)
{
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        if (strncmp(name, kinds[i].prefix, strlen(kinds[i].prefix)) == 0) {
            return &kinds[i];
        }
    }
    return NULL;
}

/* Texts from files stay on their line: control characters become '?'. */
static void print_line(const char *verdict, const char *name, const char *reason)
{
    char line[THI_MESSAGE_MAX + 512];
    snprintf(line, sizeof line, "%s %s%s%s", verdict, name, reason[0] ? ": " : "", reason);
    for (char *p = line; *p; p++) {
        *p = (unsigned char)*p < 0x20 || *p == 0x7f ? '?' : *p;
    }
    puts(line);
    fflush(stdout);
}

static void fail(tally *t, const char *name, const char *reason)
{
    print_line("FAIL", name, reason);
    t->failed++;
}

/* The parts every case has. */
static thiele_status read_frame(oracle_case *c, const json_t *root)
{
    const json_t *tolerance = json_object_get(root, "tolerance");
    c->inputs = json_object_get(root, "inputs");
    c->expected = json_object_get(root, "expected");
    if (!json_is_object(c->inputs) || !json_is_object(c->expected) || !json_is_object(tolerance)) {
        return thi_fail(c->ctx, THIELE_ERROR_FORMAT, "a case needs the objects 'inputs', 'expected' and 'tolerance'");
    }
    thiele_status status = oracle_read_number(c, tolerance, "rel", &c->rel);
    if (status == THIELE_OK) {
        status = oracle_read_number(c, tolerance, "abs", &c->abs);
    }
    if (status == THIELE_OK && !(c->rel >= 0.0 && c->abs >= 0.0)) {
        status = thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'tolerance' has a negative number");
    }
    return status;
}

static thiele_status run_case(oracle_case *c, const json_t *root, const struct kind *kind)
{
    thiele_status status = read_frame(c, root);
    if (status != THIELE_OK || kind == NULL) {
        return status;
    }
    if (json_object_size(c->expected) == 0) {
        return thi_fail(c->ctx, THIELE_ERROR_FORMAT, "'expected' is empty: there is nothing to compare");
    }
    status = kind->run(c);
    if (status == THIELE_OK && json_object_size(c->expected) > 0) {
        const char *field = json_object_iter_key(json_object_iter(c->expected));
        status = thi_fail(c->ctx, THIELE_ERROR_FORMAT, "expected field '%s' is not one that this kind computes", field);
    }
    return status;
}

static void run_root(tally *t, thiele_context *ctx, const char *path, const json_t *root)
{
    oracle_case c = {.ctx = ctx};
    const char *name = json_string_value(json_object_get(root, "case"));
    if (name == NULL || name[0] == '\0') {
        fail(t, path, "the file has no text 'case' that names it");
        return;
    }
    const struct kind *kind = find_kind(name);
    if (run_case(&c, root, kind) != THIELE_OK) {
        fail(t, name, thiele_context_message(ctx));
    } else if (kind == NULL) {
        print_line("skip", name, "kind not known yet");
        t->skipped++;
    } else {
        print_line("ok", name, "");
        t->passed++;
    }
}

static void run_file(tally *t, thiele_context *ctx, const char *path)
{
    json_error_t error;
    json_t *root = json_load_file(path, JSON_REJECT_DUPLICATES | JSON_DECODE_INT_AS_REAL, &error);
    if (root == NULL) {
        char reason[JSON_ERROR_TEXT_LENGTH + 64];
        snprintf(reason, sizeof reason, "not readable as JSON: %s (line %d)", error.text, error.line);
        fail(t, path, reason);
        return;
    }
    run_root(t, ctx, path, root);
    json_decref(root);
}

static int is_json(const struct dirent *entry)
{
    size_t length = strlen(entry->d_name);
    return entry->d_name[0] != '.' && length > 5 && strcmp(entry->d_name + length - 5, ".json") == 0;
}

static void run_folder(tally *t, thiele_context *ctx, const char *folder)
{
    struct dirent **entries = NULL;
    int count = scandir(folder, &entries, is_json, alphasort);
    if (count <= 0) {
        fail(t, folder, count < 0 ? strerror(errno) : "there are no *.json files in this folder");
    }
    for (int i = 0; i < count; i++) {
        char *path = NULL;
        if (asprintf(&path, "%s/%s", folder, entries[i]->d_name) < 0) {
            fail(t, entries[i]->d_name, "out of memory");
        } else {
            run_file(t, ctx, path);
            free(path);
        }
        free(entries[i]);
    }
    free(entries);
}

static void run_argument(tally *t, thiele_context *ctx, const char *path)
{
    struct stat info;
    if (stat(path, &info) != 0) {
        fail(t, path, strerror(errno));
    } else if (S_ISDIR(info.st_mode)) {
        run_folder(t, ctx, path);
    } else {
        run_file(t, ctx, path);
    }
}

int main(int argc, char **argv)
{
    if (argc == 2 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)) {
        fputs(usage, stdout);
        return 0;
    }
    if (argc < 2 || argv[1][0] == '-') {
        fputs(usage, stderr);
        return 2;
    }
    thiele_context *ctx = NULL;
    if (thiele_context_create(&ctx, NULL) != THIELE_OK) {
        fprintf(stderr, "thiele-oracle: %s\n", thiele_context_message(NULL));
        return 1;
    }
    tally t = {0, 0, 0};
    for (int i = 1; i < argc; i++) {
        run_argument(&t, ctx, argv[i]);
    }
    printf("%ld passed, %ld failed, %ld skipped\n", t.passed, t.failed, t.skipped);
    thiele_context_destroy(ctx);
    return t.failed > 0 || fflush(stdout) != 0 || ferror(stdout) ? 1 : 0;
}
