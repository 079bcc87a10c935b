// The peer in Go: container/heap with entries that know their position, and a map of keys to entries. Prints
// nanoseconds per operation and bytes per entry: container_heap COUNT
package main

import (
	"container/heap"
	"fmt"
	"log"
	"os"
	"strconv"
	"time"
)

type entry struct {
	deadline, key int64
	place         int
}

type queue []*entry

func (q queue) Len() int { return len(q) }
func (q queue) Less(i, j int) bool {
	if q[i].deadline != q[j].deadline {
		return q[i].deadline < q[j].deadline
	}
	return q[i].key < q[j].key
}
func (q queue) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].place, q[j].place = i, j
}
func (q *queue) Push(x any) {
	e := x.(*entry)
	e.place = len(*q)
	*q = append(*q, e)
}
func (q *queue) Pop() any {
	last := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return last
}

var state uint64 = 88172645463325252

func next() uint64 {
	state ^= state << 13
	state ^= state >> 7
	state ^= state << 17
	return state
}

func residentBytes() int {
	text, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		log.Fatal(err)
	}
	var size, resident int
	if _, err := fmt.Sscan(string(text), &size, &resident); err != nil {
		log.Fatal(err)
	}
	return resident * os.Getpagesize()
}

func nanoseconds(operations int, body func()) int64 {
	start := time.Now()
	body()
	return time.Since(start).Nanoseconds() / int64(operations)
}

func main() {
	const span = 3600000
	if len(os.Args) < 2 {
		log.Fatal("container_heap COUNT")
	}
	count, err := strconv.Atoi(os.Args[1])
	if err != nil {
		log.Fatal(err)
	}
	operations := count
	if operations > 1000000 {
		operations = 1000000
	}
	before := residentBytes()
	q := queue{}
	places := map[int64]*entry{}
	push := nanoseconds(count, func() {
		for key := int64(0); key < int64(count); key++ {
			e := &entry{deadline: int64(next() % span), key: key}
			places[key] = e
			heap.Push(&q, e)
		}
	})
	bytes := (residentBytes() - before) / count
	move := nanoseconds(operations, func() {
		for at := 0; at < operations; at++ {
			e := places[int64(next()%uint64(count))]
			e.deadline = int64(next() % span)
			heap.Fix(&q, e.place)
		}
	})
	var last, sum int64
	pop := nanoseconds(operations, func() {
		for at := 0; at < operations; at++ {
			e := heap.Pop(&q).(*entry)
			delete(places, e.key)
			if e.deadline < last {
				log.Fatal("popped out of order")
			}
			last = e.deadline
			sum += last
		}
	})
	fmt.Printf("{\"push_ns\": %d, \"move_ns\": %d, \"pop_ns\": %d, \"bytes\": %d, \"sum\": %d}\n", push, move, pop, bytes, sum)
}
