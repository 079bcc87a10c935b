import Base
import Foundation
import Scheduler

/// Pushes, moves and pops deadlines: the peers in Benchmarks/peers do the same.
struct HeapBenchmark {
    /// The number of deadlines to push.
    let count: Int
    /// The maximum number of deadlines to move, and to pop.
    private static let most = 1_000_000
    /// The range of the deadlines: an hour in milliseconds.
    private static let span: UInt64 = 3_600_000

    /// Returns the nanoseconds per operation and bytes per entry as JSON.
    func run() throws -> String {
        var random = XorShift()
        let before = try Self.residentBytes()
        var heap = DeadlineHeap()
        let push = Self.nanoseconds(count) {
            for key in 0..<count { heap.set(Int64(key), deadline: random.deadline(within: Self.span)) }
        }
        let bytes = try (Self.residentBytes() - before) / count
        let operations = min(count, Self.most)
        let move = Self.nanoseconds(operations) {
            for _ in 0..<operations {
                let key = Int64(random.next() % UInt64(count))
                heap.set(key, deadline: random.deadline(within: Self.span))
            }
        }
        var last = Timestamp(milliseconds: 0)
        var sum: Int64 = 0
        let pop = Self.nanoseconds(operations) {
            for _ in 0..<operations {
                guard let entry = heap.popDue(at: Timestamp(milliseconds: .max)) else { preconditionFailure("too few") }
                precondition(entry.deadline >= last, "popped out of order")
                last = entry.deadline
                sum &+= last.milliseconds
            }
        }
        return """
            {"push_ns": \(push), "move_ns": \(move), "pop_ns": \(pop), "bytes": \(bytes), "sum": \(sum)}
            """
    }

    private static func nanoseconds(_ operations: Int, _ body: () -> Void) -> Int {
        // TimeSource counts in milliseconds.
        let clock = ContinuousClock()  // time: allowed
        return Int(clock.measure(body).inSeconds / Double(operations) * 1e9)
    }

    private static func residentBytes() throws -> Int {
        let fields = try String(contentsOfFile: "/proc/self/statm", encoding: .utf8).split(separator: " ")
        guard fields.count > 1, let pages = Int(fields[1]) else {
            throw SeedError(message: "/proc/self/statm has an unknown form.")
        }
        return pages * Int(sysconf(Int32(_SC_PAGESIZE)))
    }
}

/// The same numbers in all three programs (xorshift64, https://www.jstatsoft.org/v08/i14/paper).
struct XorShift {
    private var state: UInt64 = 88_172_645_463_325_252

    mutating func next() -> UInt64 {
        state ^= state << 13
        state ^= state >> 7
        state ^= state << 17
        return state
    }

    mutating func deadline(within span: UInt64) -> Timestamp { Timestamp(milliseconds: Int64(next() % span)) }
}
