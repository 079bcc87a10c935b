// The peer in C++. std::priority_queue cannot move an entry, so a move pushes another one and a pop skips outdated
// ones, as is usual. Prints nanoseconds per operation and bytes per entry: priority_queue COUNT
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <queue>
#include <unistd.h>
#include <unordered_map>
#include <vector>

struct Entry {
    int64_t deadline, key;
    bool operator>(const Entry &other) const
    {
        return deadline != other.deadline ? deadline > other.deadline : key > other.key;
    }
};

static uint64_t state = 88172645463325252u;
static uint64_t next_random()
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return state;
}

static long resident_bytes()
{
    long size = 0, resident = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    if (!file || fscanf(file, "%ld %ld", &size, &resident) != 2) abort();
    fclose(file);
    return resident * sysconf(_SC_PAGESIZE);
}

template <typename Body> static long nanoseconds(long operations, Body body)
{
    auto start = std::chrono::steady_clock::now();
    body();
    return std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count() / operations;
}

int main(int argc, char **argv)
{
    const uint64_t span = 3600000;
    long count = argc > 1 ? atol(argv[1]) : 0;
    if (count < 1) return 64;
    long operations = count < 1000000 ? count : 1000000, before = resident_bytes();
    std::priority_queue<Entry, std::vector<Entry>, std::greater<Entry>> heap;
    std::unordered_map<int64_t, int64_t> deadlines;
    auto set = [&](int64_t key) {
        int64_t deadline = next_random() % span;
        deadlines[key] = deadline;
        heap.push({deadline, key});
    };
    long push = nanoseconds(count, [&] { for (long key = 0; key < count; key++) set(key); });
    long bytes = (resident_bytes() - before) / count;
    long move = nanoseconds(operations, [&] { for (long at = 0; at < operations; at++) set(next_random() % count); });
    int64_t last = 0, sum = 0;
    long pop = nanoseconds(operations, [&] {
        for (long popped = 0; popped < operations;) {
            Entry entry = heap.top();
            heap.pop();
            auto current = deadlines.find(entry.key);
            if (current == deadlines.end() || current->second != entry.deadline) continue;
            deadlines.erase(current);
            if (entry.deadline < last) abort();
            last = entry.deadline;
            sum += last;
            popped++;
        }
    });
    printf("{\"push_ns\": %ld, \"move_ns\": %ld, \"pop_ns\": %ld, \"bytes\": %ld, \"sum\": %ld}\n", push, move, pop, bytes,
           (long)sum);
}
