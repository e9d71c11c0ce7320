/* generator PORT PER_SECOND BEGIN_NS WARM_NS MEASURED_NS SEED OUT [CONNECTIONS REQUEST]: requests leave by the clock, not
   when answers come. Arrivals are Poisson, the same for the same seed. Those due from BEGIN_NS on are measured; WARM_NS
   before it the load begins. OUT gets one 64-bit latency in ns for each, from the moment it was due; all ones: no
   answer came. Prints in the end the share of requests that left more than 0.3 ms late.
   Without REQUEST datagrams to our own service; with it that text over so many TCP connections in turn, to a server
   that answers each connection in order and always with as many bytes: the first answer says how many. */
#include "load.h"
#include <arpa/inet.h>
#include <errno.h>
#include <math.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>

enum { LATE_NS = 300000, BACKLOG = 16 << 20, WOKEN = 64, CHUNK = 1 << 16, SILENCE_MS = 300 };
/* Whoever has not answered by then is not waited for. */
static const uint64_t WAIT_NS = 2 * NS;

struct request {
    uint64_t due, index;
};

/* One TCP connection: requests `number_th`, `number_th + connections`, … are answered on it in this order. */
struct connection {
    int line;
    uint64_t bytes, next;
};

static uint64_t *due, *latency, total, answered, connections, answer_bytes;
static struct connection *connected;
static const char *request_text;
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

static int connect_to(int port, int type) {
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(port), .sin_addr = {htonl(INADDR_LOOPBACK)}};
    int backlog = BACKLOG, opened = socket(AF_INET, type | SOCK_CLOEXEC, 0);
    if (opened < 0 || connect(opened, (struct sockaddr *)&to, sizeof to))
        die("generator");
    if (setsockopt(opened, SOL_SOCKET, SO_RCVBUFFORCE, &backlog, sizeof backlog))
        setsockopt(opened, SOL_SOCKET, SO_RCVBUF, &backlog, sizeof backlog);
    return opened;
}

static void connect_datagrams(int port) {
    struct timeval wait = {.tv_usec = 100000};
    line = connect_to(port, SOCK_DGRAM);
    setsockopt(line, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
}

/* Bytes that come until nothing has come for a while. */
static uint64_t length_of_answer(int opened) {
    static char chunk[CHUNK];
    struct timeval wait = {.tv_usec = SILENCE_MS * 1000}, none = {0};
    uint64_t bytes = 0;
    setsockopt(opened, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    if (send(opened, request_text, strlen(request_text), 0) < 0)
        die("generator");
    for (ssize_t size; (size = recv(opened, chunk, sizeof chunk, 0)) > 0;)
        bytes += size;
    setsockopt(opened, SOL_SOCKET, SO_RCVTIMEO, &none, sizeof none);
    return bytes;
}

static void connect_streams(int port) {
    int at_once = 1, backlog = BACKLOG;
    connected = calloc(connections, sizeof *connected);
    if (!connected || (line = epoll_create1(EPOLL_CLOEXEC)) < 0)
        die("generator");
    for (uint64_t i = 0; i < connections; i++) {
        struct epoll_event event = {.events = EPOLLIN, .data.u64 = i};
        connected[i] = (struct connection){connect_to(port, SOCK_STREAM), 0, i};
        setsockopt(connected[i].line, IPPROTO_TCP, TCP_NODELAY, &at_once, sizeof at_once);
        if (setsockopt(connected[i].line, SOL_SOCKET, SO_SNDBUFFORCE, &backlog, sizeof backlog))
            setsockopt(connected[i].line, SOL_SOCKET, SO_SNDBUF, &backlog, sizeof backlog);
        if (i == 0 && !(answer_bytes = length_of_answer(connected[i].line))) {
            errno = ENODATA;
            die("generator");
        }
        if (epoll_ctl(line, EPOLL_CTL_ADD, connected[i].line, &event))
            die("generator");
    }
}

static void take(struct connection *from) {
    static char chunk[CHUNK];
    ssize_t size = recv(from->line, chunk, sizeof chunk, MSG_DONTWAIT);
    if (size == 0)
        epoll_ctl(line, EPOLL_CTL_DEL, from->line, NULL);
    if (size > 0)
        from->bytes += size;
    for (; from->bytes >= answer_bytes && from->next < total; from->next += connections, answered++) {
        from->bytes -= answer_bytes;
        latency[from->next] = now_ns() - due[from->next];
    }
}

static void *receive_streams(void *last_wait) {
    uint64_t until = *(uint64_t *)last_wait;
    struct epoll_event woken[WOKEN];
    real_time(1);
    while (answered < total && now_ns() < until)
        for (int i = epoll_wait(line, woken, WOKEN, 100); i > 0; i--)
            take(&connected[woken[i - 1].data.u64]);
    return NULL;
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
        if (connections) {
            ssize_t size = strlen(request_text);
            /* Every answer after half a request would be counted for another. */
            if (send(connected[i % connections].line, request_text, size, MSG_DONTWAIT | MSG_NOSIGNAL) != size)
                die("generator");
            continue;
        }
        /* A service that is gone refuses; the request stays unanswered. */
        if (send(line, &request, sizeof request, MSG_DONTWAIT) < 0)
            continue;
    }
    return late;
}

int main(int count, char **words) {
    if (count != 8 && count != 10)
        return 2;
    if (count == 10) {
        connections = number(words[8]);
        request_text = words[9];
    }
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
    if (connections)
        connect_streams(number(words[1]));
    else
        connect_datagrams(number(words[1]));
    pthread_create(&receiver, NULL, connections ? receive_streams : receive, &until);
    real_time(2);
    uint64_t late = send_all(first);
    pthread_join(receiver, NULL);
    FILE *out = fopen(words[7], "wb");
    if (!out || fwrite(latency + first, sizeof *latency, total - first, out) != total - first || fclose(out))
        die(words[7]);
    printf("%.4f\n", total > first ? (double)late / (total - first) : 0.0);
    return 0;
}
