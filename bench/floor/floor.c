/* The floor: cached descriptors, one pread a file, integers parsed in place. Forms as in bench/files.py, in order. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum form { NUMBER, KEYED, PRESSURE };
enum { GROUPS = 16, BUFFER = 16384 };

struct group {
    enum form form;
    int count, key_count;
    int *descriptors;
    char **keys;
    size_t *key_lengths;
    long long total;
};

static struct group groups[GROUPS];
static int group_count;
static volatile double averages; /* keeps the parsing of averages from being optimised away */

int floor_open(int form, const char **paths, int count, const char **keys, int key_count) {
    if (group_count == GROUPS)
        return E2BIG;
    struct group *g = &groups[group_count];
    g->form = form;
    g->count = count;
    g->key_count = key_count;
    g->descriptors = malloc(sizeof(int) * (count + 1));
    g->keys = malloc(sizeof(char *) * (key_count + 1));
    g->key_lengths = malloc(sizeof(size_t) * (key_count + 1));
    for (int i = 0; i < key_count; i++) {
        g->keys[i] = strdup(keys[i]);
        g->key_lengths[i] = strlen(keys[i]);
    }
    for (int i = 0; i < count; i++)
        if ((g->descriptors[i] = open(paths[i], O_RDONLY | O_CLOEXEC)) < 0)
            return errno;
    group_count++;
    return 0;
}

static long long whole(const char **at) {
    long long value = 0;
    const char *p = *at;
    while (*p >= '0' && *p <= '9')
        value = value * 10 + (*p++ - '0');
    *at = p;
    return value;
}

static long long keyed(const struct group *g, const char *text) {
    long long sum = 0;
    while (*text) {
        const char *space = strchr(text, ' ');
        if (!space)
            break;
        size_t length = space - text;
        text = space + 1;
        long long value = whole(&text);
        for (int k = 0; k < g->key_count; k++)
            if (g->key_lengths[k] == length && !memcmp(g->keys[k], space - length, length))
                sum += value;
        text = strchr(text, '\n');
        if (!text)
            break;
        text++;
    }
    return sum;
}

/* "some avg10=0.00 avg60=0.00 avg300=0.00 total=0": every number after a '='; the one without a point is the total. */
static long long pressure(const char *text) {
    long long sum = 0;
    while ((text = strchr(text, '='))) {
        text++;
        long long value = whole(&text);
        if (*text == '.') {
            text++;
            averages = value + whole(&text) / 100.0;
        } else {
            sum += value;
        }
    }
    return sum;
}

int floor_read(void) {
    char buffer[BUFFER + 1];
    for (int n = 0; n < group_count; n++) {
        struct group *g = &groups[n];
        long long total = 0;
        for (int i = 0; i < g->count; i++) {
            ssize_t size = pread(g->descriptors[i], buffer, BUFFER, 0);
            if (size < 0)
                return errno;
            buffer[size] = 0;
            const char *text = buffer;
            total += g->form == NUMBER ? whole(&text) : g->form == KEYED ? keyed(g, buffer) : pressure(buffer);
        }
        g->total = total;
    }
    return 0;
}

long long floor_total(int n) { return groups[n].total; }
