/* lockholder COUNTERS SLOT FILE: writes 8 MiB to the begin of FILE without end, each time with the lock of its inode
   held, and counts writes in the SLOTth 64-bit number of COUNTERS. */
#include "load.h"
#include <fcntl.h>
#include <sys/mman.h>

enum { BYTES = 8 << 20 };

int main(int count, char **words) {
    if (count != 4)
        return 2;
    int counted = open(words[1], O_RDWR | O_CLOEXEC), file = open(words[3], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    volatile uint64_t *counters = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, counted, 0);
    char *content = calloc(1, BYTES);
    if (counted < 0 || file < 0 || counters == MAP_FAILED || !content)
        die(words[3]);
    start("ready");
    for (volatile uint64_t *mine = counters + number(words[2]);; (*mine)++)
        if (pwrite(file, content, BYTES, 0) != BYTES)
            die(words[3]);
}
