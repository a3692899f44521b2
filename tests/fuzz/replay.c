/* Runs a fuzzer's function on the files of the folders that are given: the seeds, without libFuzzer. */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int replay(const char *path)
{
    enum { MOST = 1 << 20 };
    FILE *stream = fopen(path, "rb");
    uint8_t *bytes = malloc(MOST);
    int failed = stream == NULL || bytes == NULL;
    if (!failed) {
        size_t size = fread(bytes, 1, MOST, stream);
        fprintf(stderr, "%s: %zu bytes\n", path, size); /* the last one is the one that crashed */
        LLVMFuzzerTestOneInput(bytes, size);
    }
    if (stream != NULL) {
        fclose(stream);
    }
    free(bytes);
    return failed;
}

int main(int argc, char **argv)
{
    int count = 0, failed = 0;
    for (int i = 1; i < argc; i++) {
        DIR *folder = opendir(argv[i]);
        for (const struct dirent *entry = folder != NULL ? readdir(folder) : NULL; entry != NULL;
             entry = readdir(folder)) {
            char path[1200];
            snprintf(path, sizeof path, "%s/%s", argv[i], entry->d_name);
            if (entry->d_name[0] != '.') {
                failed |= replay(path);
                count++;
            }
        }
        if (folder != NULL) {
            closedir(folder);
        }
    }
    printf("%d files\n", count);
    return failed || count == 0;
}
