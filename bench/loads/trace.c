/* trace FILE INTERVAL_US: reads a control file each so many us and prints the time (ns) and its text when it changed. */
#include "load.h"
#include <fcntl.h>
#include <string.h>

int main(int count, char **words) {
    if (count != 3)
        return 2;
    char last[64] = "", text[64];
    int file = open(words[1], O_RDONLY | O_CLOEXEC);
    if (file < 0)
        die(words[1]);
    start("ready");
    real_time(3);
    for (uint64_t at = now_ns();; sleep_until(at += number(words[2]) * 1000)) {
        ssize_t size = pread(file, text, sizeof text - 1, 0);
        if (size < 0)
            die(words[1]);
        text[size] = 0;
        if (!strcmp(text, last))
            continue;
        printf("%llu %s", (unsigned long long)now_ns(), strcpy(last, text));
        fflush(stdout);
    }
}
