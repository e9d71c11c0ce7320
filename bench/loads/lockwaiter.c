/* lockwaiter FILE PER_SECOND BEGIN_NS WARM_NS MEASURED_NS OUT: writes a byte to FILE at even times, for which it needs
   the lock of its inode. Begins WARM_NS before BEGIN_NS. OUT gets one 64-bit latency in ns for each write due from BEGIN_NS
   on, from the moment it was due; all ones: it was not done until two seconds after the end. */
#include "load.h"
#include <fcntl.h>

static const uint64_t WAIT_NS = 2 * NS;

int main(int count, char **words) {
    if (count != 7)
        return 2;
    uint64_t interval = NS / number(words[2]), begin = number(words[3]), first = begin - number(words[4]);
    uint64_t end = begin + number(words[5]);
    int file = open(words[1], O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    FILE *out = fopen(words[6], "we");
    if (file < 0 || !out)
        die(words[1]);
    for (uint64_t due = first; due < end; due += interval) {
        uint64_t latency = UINT64_MAX;
        if (now_ns() < due)
            sleep_until(due);
        if (now_ns() < end + WAIT_NS) {
            if (pwrite(file, "", 1, 0) != 1)
                die(words[1]);
            latency = now_ns() - due;
        }
        if (due >= begin && fwrite(&latency, sizeof latency, 1, out) != 1)
            die(words[6]);
    }
    return fclose(out);
}
