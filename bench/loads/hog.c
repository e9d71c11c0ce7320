/* hog PROCESSES MIB_PER_SECOND MOST_MIB: as many processes, each touching its part of so much fresh memory a second. */
#include "load.h"
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>

static void grow(uint64_t mib_per_second, uint64_t most, uint64_t processes) {
    uint64_t bytes = (most << 20) / processes, chunk = 1 << 20, gap = NS * processes / mib_per_second, at = now_ns();
    char *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED)
        die("hog");
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (uint64_t done = 0; done + chunk <= bytes; done += chunk) {
        memset(memory + done, 1, chunk);
        sleep_until(at += gap);
    }
    for (;;)
        pause();
}

int main(int count, char **words) {
    if (count != 4)
        return 2;
    uint64_t processes = number(words[1]);
    start("ready");
    for (uint64_t i = 0; i < processes; i++)
        if (fork() == 0)
            grow(number(words[2]), number(words[3]), processes);
    while (wait(NULL) > 0) {
    }
    return 0;
}
