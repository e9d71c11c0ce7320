/* generator PORT PER_SECOND BEGIN_NS WARM_NS MEASURED_NS SEED OUT: requests leave by the clock, not when answers come.
   Arrivals are Poisson, the same for the same seed. Those due from BEGIN_NS on are measured; WARM_NS before it
   the load begins. OUT gets one 64-bit latency in ns for each, from the moment it was due; all ones: no answer came.
   Prints in the end the share of requests that left more than 0.3 ms late. */
#include "load.h"
#include <arpa/inet.h>
#include <math.h>
#include <pthread.h>
#include <sys/socket.h>

enum { LATE_NS = 300000, BACKLOG = 16 << 20 };
/* Whoever has not answered by then is not waited for. */
static const uint64_t WAIT_NS = 2 * NS;

struct request {
    uint64_t due, index;
};

static uint64_t *due, *latency, total, answered;
static int line;

static void room_for(double requests) {
    due = calloc(requests, sizeof *due);
    latency = calloc(requests, sizeof *latency);
    if (!due || !latency)
        die("generator");
}

static void plan(uint64_t begin, uint64_t end, double per_second, uint64_t seed) {
    uint64_t state = seed * 2654435761u + 88172645463325252ull;
    double at = begin;
    for (;;) {
        double uniform = ((scramble(&state) >> 11) + 1) / 9007199254740993.0;
        at -= log(uniform) * 1e9 / per_second;
        if (at >= end)
            return;
        due[total] = at;
        latency[total++] = UINT64_MAX;
    }
}

static void connect_to(int port) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    struct timeval wait = {.tv_usec = 100000};
    int backlog = BACKLOG;
    line = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (line < 0 || connect(line, (struct sockaddr *)&to, sizeof to))
        die("generator");
    if (setsockopt(line, SOL_SOCKET, SO_RCVBUFFORCE, &backlog, sizeof backlog))
        setsockopt(line, SOL_SOCKET, SO_RCVBUF, &backlog, sizeof backlog);
    setsockopt(line, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
}

static void *receive(void *last_wait) {
    uint64_t until = *(uint64_t *)last_wait;
    struct request answer;
    real_time(1);
    while (answered < total && now_ns() < until)
        if (recv(line, &answer, sizeof answer, 0) == sizeof answer && answer.index < total) {
            latency[answer.index] = now_ns() - answer.due;
            answered++;
        }
    return NULL;
}

static uint64_t send_all(uint64_t first) {
    uint64_t late = 0;
    for (uint64_t i = 0; i < total; i++) {
        struct request request = {due[i], i};
        if (now_ns() < due[i])
            sleep_until(due[i]);
        late += i >= first && now_ns() > due[i] + LATE_NS;
        /* A service that is gone refuses; the request stays unanswered. */
        if (send(line, &request, sizeof request, MSG_DONTWAIT) < 0)
            continue;
    }
    return late;
}

int main(int count, char **words) {
    if (count != 8)
        return 2;
    uint64_t begin = number(words[3]), warm = begin - number(words[4]), end = begin + number(words[5]);
    uint64_t until = end + WAIT_NS, seed = number(words[6]);
    double per_second = atof(words[2]);
    pthread_t receiver;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    room_for((end - warm) / 1e9 * per_second * 2 + 1000);
    /* Whatever came before, what is measured is the same for the same seed. */
    plan(warm, begin, per_second, ~seed);
    uint64_t first = total;
    plan(begin, end, per_second, seed);
    connect_to(number(words[1]));
    pthread_create(&receiver, NULL, receive, &until);
    real_time(2);
    uint64_t late = send_all(first);
    pthread_join(receiver, NULL);
    FILE *out = fopen(words[7], "wb");
    if (!out || fwrite(latency + first, sizeof *latency, total - first, out) != total - first || fclose(out))
        die(words[7]);
    printf("%.4f\n", total > first ? (double)late / (total - first) : 0.0);
    return 0;
}
