/* spinner COUNTERS SLOT: works without end and counts in the SLOTth 64-bit number of the file COUNTERS. */
#include "load.h"
#include <fcntl.h>
#include <sys/mman.h>

int main(int count, char **words) {
    if (count != 3)
        return 2;
    int file = open(words[1], O_RDWR | O_CLOEXEC);
    volatile uint64_t *counters = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    if (file < 0 || counters == MAP_FAILED)
        die(words[1]);
    start("ready");
    for (volatile uint64_t *mine = counters + number(words[2]);; (*mine)++)
        work(1000);
}
